"""Every way to cut a graph into stages that GraphPipe's space holds, one by one, and what each costs.

Written from the description of the space, without its compiled form and without dynamic programming.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from pipebench.costs.formula import Formula
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.topology import topological_order
from pipebench_graphpipe.series_parallel import Node, ParallelNode, leaves, parts

Group = frozenset[int]
Cut = list[Group]


@dataclass(frozen=True)
class Space:
    """work: of each operator; branches are ordered by it. owners: offered at either end of a fork. along: whole
    branches that an owner takes: `any` number of the lightest, `none`, or `light`: those under `light` of the
    fork's work, or all.
    """

    work: dict[int, float]
    owners: int = 8
    along: str = "any"
    light: float = 0.05

    def choices(self, branches: Sequence[Node]) -> list[tuple[int | None, int]]:
        """Owners, none too, each with the numbers of lightest others that a stage may take with it."""
        count = len(branches)
        works = [self.of(branch) for branch in branches]
        half = self.owners // 2
        owners = range(count) if count <= self.owners else [*range(half), *range(count - half, count)]
        found: list[tuple[int | None, int]] = [(None, whole) for whole in range(count)]
        for owner in owners:
            light = sum(work < self.light * sum(works) for other, work in enumerate(works) if other != owner)
            along = {"any": range(count), "none": (0,), "light": {0, light, count - 1}}[self.along]
            found += [(owner, whole) for whole in along]
        return found

    def of(self, node: Node) -> float:
        """The work of a part."""
        return sum(self.work[operator] for operator in leaves(node))


def cuts(node: Node, space: Space) -> Iterator[Cut]:
    """All cuts of a tree."""
    yield from _chain(list(parts(node)), space)


def _chain(elements: Sequence[Node], space: Space) -> Iterator[Cut]:
    yield from _from(elements, 0, None, False, space)


def _from(elements: Sequence[Node], at: int, stage: Group | None, growing: bool, space: Space) -> Iterator[Cut]:
    """stage: the one that is being filled. growing: it has to take something more."""
    if at == len(elements):
        if not growing:
            yield [stage] if stage is not None else []
        return
    everything = frozenset(leaves(elements[at]))
    if stage is not None:
        yield from _from(elements, at + 1, stage | everything, False, space)
    if not growing:
        for cut in _from(elements, at + 1, everything, False, space):
            yield ([stage] if stage is not None else []) + cut
    node = elements[at]
    if isinstance(node, ParallelNode):
        for head, inner, tail, must_grow in _openings(node, stage is not None, growing, space):
            first = [] if stage is None else [stage | head]
            for cut in _from(elements, at + 1, tail or None, must_grow, space):
                yield first + inner + cut


def _openings(
    node: ParallelNode, has_stage: bool, growing: bool, space: Space
) -> Iterator[tuple[Group, Cut, Group, bool]]:
    """What the stage in front takes of a fork, cuts of what is left, what the stage behind starts with, and
    whether that one has to go on.
    """
    branches = sorted(node.children, key=lambda child: -space.of(child))
    count = len(branches)
    for (front, front_whole), (back, back_whole) in product(space.choices(branches), repeat=2):
        takes = front is not None or front_whole > 0
        if (takes and not has_stage) or (growing and not takes) or (front_whole and back_whole):
            continue
        absorbed_front = [b for b in range(count) if b != front][count - (front is not None) - front_whole :]
        absorbed_back = [b for b in range(count) if b != back][count - (back is not None) - back_whole :]
        absorbed = absorbed_front + absorbed_back
        if front in absorbed or back in absorbed:
            continue
        left = [branches[b] for b in range(count) if b not in (front, back, *absorbed)]
        for head, between, tail in _owned(branches, front, back):
            whole_head = _operators([branches[b] for b in absorbed_front])
            whole_tail = _operators([branches[b] for b in absorbed_back])
            must_grow = bool(back is None) != bool(back_whole == 0) if back is None else back_whole == 0
            for groups in _side_by_side(left, space):
                for cut in between(space):
                    yield head | whole_head, cut + groups, tail | whole_tail, must_grow


def _owned(branches, front, back):  # type: ignore[no-untyped-def]
    """Splits of the owners' branches: head, cuts of what is between, tail."""
    fronts = list(parts(branches[front])) if front is not None else []
    backs = list(parts(branches[back])) if back is not None else []
    if front is not None and front == back:
        for end in range(1, len(fronts)):
            for start in range(end, len(fronts)):
                middle = fronts[end:start]
                yield (
                    _operators(fronts[:end]),
                    lambda space, middle=middle: _chain(middle, space),
                    _operators(fronts[start:]),
                )
        return
    for end in range(1, len(fronts) + 1) if front is not None else (0,):
        for start in range(len(backs)) if back is not None else (0,):
            after, before = fronts[end:], backs[:start]
            yield (
                _operators(fronts[:end]),
                lambda space, after=after, before=before: (
                    one + other for one in _chain(after, space) for other in _chain(before, space)
                ),
                _operators(backs[start:]),
            )


def _side_by_side(branches: Sequence[Node], space: Space) -> Iterator[Cut]:
    """Each branch cut on its own, or runs of several branches as one stage."""
    if not branches:
        yield []
        return
    for cut in _chain(list(parts(branches[0])), space):
        for rest in _side_by_side(branches[1:], space):
            yield cut + rest
    for run in range(2, len(branches) + 1):
        for rest in _side_by_side(branches[run:], space):
            yield [_operators(branches[:run]), *rest]


def _operators(nodes: Sequence[Node]) -> Group:
    return frozenset(operator for node in nodes for operator in leaves(node))


def work_of(problem: Problem) -> dict[int, float]:
    """Forward and backward at all profiled sizes, of each operator."""
    costs = problem.profile.costs[0].operators
    return {number: sum(c.forward_s) + sum(c.backward_s) for number, c in enumerate(costs)}


def plan_of_cut(problem: Problem, cut: Cut, replicas: Sequence[int], micro_batch: int) -> Plan:
    """A plan with a stage for each group, on consecutive devices."""
    names = [operator.name for operator in problem.profile.graph.operators]
    stages = []
    first = 0
    for group, used in zip(cut, replicas, strict=True):
        stages.append(
            Stage(
                operators=tuple(names[o] for o in sorted(group)),
                devices=tuple(range(first, first + used)),
                data_parallel=used,
                micro_batch=micro_batch,
                recompute=problem.pins.recompute or "none",
            )
        )
        first += used
    return Plan(stages=tuple(stages))


def depths(problem: Problem, plan: Plan) -> list[int] | None:
    """Stages on the longest path from each stage to a sink; None when the stages form a cycle."""
    after: list[list[int]] = [[] for _ in plan.stages]
    for before, successor in stage_edges(problem.profile.graph, plan):
        after[before].append(successor)
    try:
        order = topological_order(after, [str(stage) for stage in range(len(after))])
    except InvalidValue:
        return None
    found = [0] * len(after)
    for stage in reversed(order):
        found[stage] = 1 + max((found[successor] for successor in after[stage]), default=0)
    return found


def period_ns(problem: Problem, model: CostModel, plan: Plan, position: int) -> int:
    """Forward, backward, what leaves forward and back at the stage's own replicas, and its share of all-reduce."""
    stage, graph = plan.stages[position], problem.profile.graph
    times = model.stage_times(stage)
    link, used = problem.cluster.flat(problem.cluster.size), stage.data_parallel
    sent = {message.tensor for message in model.messages(plan) if message.source == position}
    transfers = sum(
        Formula.message_ns(link, size(tensor, stage.micro_batch), used, used)
        for tensor in sent
        for size in (model.tensor_bytes, model.gradient_bytes)
    )
    assert graph is model.graph
    return times.period + transfers + -(-times.all_reduce * stage.micro_batch // problem.mini_batch)


def smallest_bottleneck(problem: Problem, candidates: Iterator[Cut], micro_batch: int) -> int | None:
    """The least longest period over all cuts and all powers of two of replicas, within memory."""
    model, devices = CostModel(problem), problem.cluster.size
    counts = [used for used in (1, 2, 4, 8) if used <= min(devices, micro_batch)]
    best: int | None = None
    seen: set[frozenset[Group]] = set()
    for cut in candidates:
        key = frozenset(cut)
        if len(cut) > devices or key in seen:
            continue
        seen.add(key)
        deep = depths(problem, plan_of_cut(problem, cut, [1] * len(cut), micro_batch))
        if deep is None:
            continue
        options: list[list[tuple[int, int]]] = []
        for position, depth in enumerate(deep):
            fitting = []
            for used in counts:
                replicas = [used if other == position else 1 for other in range(len(cut))]
                plan = plan_of_cut(problem, cut, replicas, micro_batch)
                live = min(depth, problem.mini_batch // micro_batch)
                memory = model.stage_memory(plan, position, model.messages(plan)).peak(live)
                if memory <= problem.cluster.memory_bytes:
                    fitting.append((used, period_ns(problem, model, plan, position)))
            options.append(fitting)
        for chosen in product(*options):
            if sum(used for used, _ in chosen) <= devices:
                longest = max(period for _, period in chosen)
                best = longest if best is None else min(best, longest)
    return best
