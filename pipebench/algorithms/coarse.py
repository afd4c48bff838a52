"""A problem in at most so many blocks of operators: planners see the blocks, plans are given back in operators."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from pipebench.algorithms.blocks.block_cuts import Block, BlockLoads, convex_blocks
from pipebench.algorithms.blocks.grouped import PLAIN, joined_graph, joined_way, plain_way
from pipebench.algorithms.blocks.quotient import Tensors
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import NS_PER_S, whole_bytes
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts
from pipebench.domain.recomputation import LayerRecompute, Repeated, of_layers, repeated

BLOCK = "block"
"""The kind of an operator that stands for several."""
HELD_SHARE = 4
"""A block of several operators keeps at most one part of so many of a device's memory, where that is possible."""
Ways = dict[tuple[str, str], tuple[str, ...]]
"""(block, alternative) to the alternative of each operator of the block."""


@dataclass(frozen=True, slots=True)
class CoarseProblem:
    """A problem in blocks, and the way back.

    problem: the one for planners. Its operators are the blocks; a block of one operator is that operator.
    operators: for each block, by its name, the names of its operators.
    ways: for a block's alternative those of its operators.
    """

    problem: Problem
    operators: dict[str, tuple[str, ...]]
    ways: Ways

    def expand(self, plan: Plan) -> Plan:
        """The plan in operators. Raises UnsupportedProblem where it splits a block."""
        return replace(plan, stages=tuple(map(self._expand_stage, plan.stages)))

    def _expand_stage(self, stage: Stage) -> Stage:
        names = [(block, name) for block in stage.operators for name in self.operators.get(block, (block,))]
        ways: list[str] = []
        for block, way in zip(stage.operators, stage.choice, strict=False):
            count = len(self.operators.get(block, (block,)))
            ways += self.ways.get((block, way), (way,) * count)
        splits: list[dict[str, int]] = []
        for block, split in zip(stage.operators, stage.sharding, strict=False):
            count = len(self.operators.get(block, (block,)))
            if count > 1 and any(parts > 1 for parts in split.values()):
                raise UnsupportedProblem(f"{block!r} is split: {count} operators in one block cannot be", UNSPLIT)
            splits += [split] if count == 1 else [{}] * count
        return replace(
            stage, operators=tuple(name for _, name in names), choice=tuple(ways), sharding=tuple(splits)
        )


UNSPLIT = "leave --coarsen out"
COARSER = "join operators to blocks with --coarsen N, such as --coarsen 64"
"""The hint of a planner that refuses a graph for its size. Shown blocks, it is shown half as many."""


def require_whole_operators(problem: Problem, planner: str) -> None:
    """Raise UnsupportedProblem for a problem in blocks: this planner splits operators."""
    if any(operator.kind == BLOCK for operator in problem.profile.graph.operators):
        raise UnsupportedProblem(f"{planner} splits operators; a block cannot be split", UNSPLIT)


def coarsen(problem: Problem, blocks: int) -> CoarseProblem:
    """The problem in at most `blocks` convex blocks of about as much work (`convex_blocks`).

    A graph of no more operators stays as it is. At each profiled micro-batch size a stage of blocks takes and
    holds what the stage of their operators does: a block's times are sums, in ns; saved bytes are sums, each
    rounded up to whole bytes; workspace is the largest; weights keep their names and count once; tensors that
    leave a block stay what they are, the others are gone. Between profiled sizes times differ by rounding, half
    a ns an operator at most where no time is clipped at 0. A block has an alternative where all of its operators
    have one of that tensor-parallel degree and that recomputation. Its weight gradient is then the plain block's
    share, and weights that alternatives of several blocks share count in each of them.

    Raises UnsupportedProblem for blocks below 1.
    """
    if blocks < 1:
        raise UnsupportedProblem(f"{blocks} blocks hold no operator", "ask for at least 1")
    graph = problem.profile.graph
    if len(graph.operators) <= blocks:
        return CoarseProblem(problem, {operator.name: (operator.name,) for operator in graph.operators}, {})
    members = convex_blocks(_edges(graph), _loads(problem), blocks)
    place = {op: position for position, op in enumerate(graph.topological)}
    members = [tuple(sorted(block, key=place.__getitem__)) for block in members]
    shells = _shells(graph, members)
    group_of = [0] * len(graph.operators)
    for position, block in enumerate(members):
        for op in block:
            group_of[op] = position
    made = joined_graph(graph, shells, group_of)
    single = [graph.operators[block[0]] if len(block) == 1 else None for block in members]
    operators = tuple(alone or joined for alone, joined in zip(single, made.operators, strict=True))
    names = [operator.name for operator in operators]
    crossing = {tensor.name for tensor in made.tensors}
    ways: Ways = {}
    layers = of_layers(problem.pins.recompute)
    costs = tuple(_costs(graph, each, members, names, crossing, ways, layers) for each in problem.profile.costs)
    profile = replace(problem.profile, graph=replace(made, operators=operators), costs=costs)
    inside = {
        name: tuple(graph.operators[op].name for op in block) for name, block in zip(names, members, strict=True)
    }
    return CoarseProblem(replace(problem, profile=profile), inside, ways)


def _edges(graph: OperatorGraph) -> list[dict[int, Tensors]]:
    found: list[dict[int, set[int]]] = [{} for _ in graph.operators]
    for tensor, (producer, readers) in enumerate(zip(graph.producers, graph.consumers, strict=True)):
        if producer >= 0:
            for reader in readers:
                found[producer].setdefault(reader, set()).add(tensor)
    return [{reader: frozenset(tensors) for reader, tensors in each.items()} for each in found]


def _loads(problem: Problem) -> BlockLoads:
    """Work: forward and backward at the largest profiled size that a mini-batch has, of all device types."""
    graph, formula = problem.profile.graph, Formula(problem.regime, problem.mini_batch)
    work = np.zeros(len(graph.operators), np.int64)
    saved = np.zeros(len(graph.operators), np.int64)
    for name in dict.fromkeys(problem.cluster.devices):
        costs = problem.profile.on(name)
        size = max((s for s in costs.micro_batches if s <= problem.mini_batch), default=costs.micro_batches[0])
        work += np.sum(OperatorTimes(costs).at(size), axis=0)
        saved = np.maximum(saved, [whole_bytes(each.saved_bytes_per_sample) for each in costs.operators])
    held = [
        formula.state_bytes(sum(graph.parameter_bytes[name] for name in operator.parameters), 1) + int(kept)
        for operator, kept in zip(graph.operators, saved, strict=True)
    ]
    sent = [
        whole_bytes(tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample) + tensor.fixed_bytes
        for tensor in graph.tensors
    ]
    constants = [op for op, operator in enumerate(graph.operators) if operator.constant]
    attached = constants if len(constants) < len(graph.operators) else []
    return BlockLoads(work.tolist(), held, sent, problem.cluster.memory_bytes // HELD_SHARE, attached)


def _shells(graph: OperatorGraph, members: Sequence[Block]) -> list[Operator]:
    """What each block is: of the layer in which it begins. Constants are joined with what reads them."""
    taken = {operator.name for operator in graph.operators}
    shells: list[Operator] = []
    for position, block in enumerate(members):
        inside = [graph.operators[op] for op in block]
        if len(block) == 1:
            shells.append(inside[0])
            continue
        name = f"block {position} of {len(block)}"
        while name in taken:
            name += "'"
        taken.add(name)
        layers = [operator.layer for operator in inside if operator.layer is not None]
        shells.append(
            Operator(
                name=name,
                kind=BLOCK,
                layer=min(layers, default=None),
                constant=all(operator.constant for operator in inside),
            )
        )
    return shells


def _costs(
    graph: OperatorGraph,
    costs: DeviceCosts,
    members: Sequence[Block],
    names: Sequence[str],
    crossing: set[str],
    ways: Ways,
    layers: LayerRecompute | None,
) -> DeviceCosts:
    """The costs of the blocks on one device type; their alternatives are added to `ways`."""
    times = OperatorTimes(costs)
    at = [(*times.at(size), times.weight_gradient_at(size)) for size in costs.micro_batches]

    def seconds(block: Block, way: int) -> tuple[float, ...]:
        return tuple(int(columns[way][list(block)].sum()) / NS_PER_S for columns in at)

    found: list[OperatorCosts] = []
    for name, block in zip(names, members, strict=True):
        inside = [costs.operators[op] for op in block]
        if len(block) == 1:
            found.append(inside[0])
            continue
        apart = any(each.weight_gradient_s for each in inside)
        found.append(
            OperatorCosts(
                operator=name,
                forward_s=seconds(block, 0),
                backward_s=seconds(block, 1),
                weight_gradient_s=seconds(block, 2) if apart else (),
                saved_bytes_per_sample=float(sum(whole_bytes(each.saved_bytes_per_sample) for each in inside)),
                workspace_bytes=max(each.workspace_bytes for each in inside),
                alternatives=_alternatives(graph, name, inside, crossing, ways, layers),
            )
        )
    return replace(costs, operators=tuple(found))


def _alternatives(
    graph: OperatorGraph,
    name: str,
    inside: Sequence[OperatorCosts],
    crossing: set[str],
    ways: Ways,
    layers: LayerRecompute | None,
) -> tuple[Alternative, ...]:
    """The ways in which all operators of a block can run: the first of a kind with the first, and so on.

    layers: how layers are pinned to recompute. Operators of no layer are then run plainly beside them.
    """
    named = inside if layers else inside[:1]
    kinds = dict.fromkeys((way.tensor_parallel, repeated(way)) for each in named for way in each.alternatives)
    found: list[Alternative] = []
    for kind in kinds:
        beside = layers if kind[1] == layers else None
        offered = [_offered(graph, each, *kind, beside) for each in inside]
        for number in range(min(map(len, offered))):
            together = [each[number] for each in offered]
            identifiers = tuple("" if way.id == PLAIN else way.id for way in together)
            identifier = identifiers[0] if len(set(identifiers)) == 1 else f"tp{kind[0]} {number}"
            while any(identifier == other.id for other in found) or ways.get((name, identifier), identifiers) != (
                identifiers
            ):  # another device type may call its ways alike
                identifier += "'"
            ways[name, identifier] = identifiers
            joined = joined_way(graph, identifier, inside, together, crossing)
            again = kind[1] != "none"
            found.append(replace(joined, recompute=again, selective=kind[1] == "selective"))
    return tuple(found)


def _offered(
    graph: OperatorGraph, each: OperatorCosts, degree: int, again: Repeated, beside: LayerRecompute | None
) -> list[Alternative]:
    """The ways of an operator of that kind; beside layers that recompute its plain one, if it belongs to none."""
    found = [way for way in each.alternatives if (way.tensor_parallel, repeated(way)) == (degree, again)]
    if found or beside is None or graph.operators[graph.index[each.operator]].layer is not None:
        return found
    if degree == 1:
        return [plain_way(graph, each)]
    return [way for way in each.alternatives if (way.tensor_parallel, repeated(way)) == (degree, "none")]
