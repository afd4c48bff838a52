"""What a load holds: as the suite counts it, or as the released program does."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.downset_table import Words, cut_edges, downset_sums, node_sets
from pipebench.costs.formula import ENDLESS, Formula
from pipebench.costs.quantise import FloatArray
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.costs.sums.terms import PlainTerms
from pipebench.domain.problem import Problem
from pipebench_tarnawski.kernel import MemoryTables
from pipebench_tarnawski.node_costs import CPU, NodeCosts, accelerator_type

Count = Literal["released", "suite"]


@dataclass(frozen=True, slots=True)
class OperatorBytes:
    """Bytes of operators; the first axis of two is CPU, accelerator.

    held: (operators,) whatever is in flight. live, scratch: (2, operators) for each live micro-batch, workspace.
    every_once, every_live: of every load besides. shared: users of a parameter, with its bytes. buffers: operators
    that make or read a tensor, with the bytes of one message and of its gradient.
    """

    held: FloatArray
    live: FloatArray
    scratch: FloatArray
    every_once: FloatArray
    every_live: FloatArray
    shared: tuple[tuple[tuple[int, ...], float], ...]
    buffers: tuple[tuple[tuple[int, ...], float], ...]

    @property
    def nothing(self) -> NDArray[np.bool_]:
        """Operators without bytes of their own."""
        used = np.zeros(len(self.held), np.bool_)
        for users, _ in self.shared:
            used[list(users)] = True
        used |= (self.held > 0) | (self.live > 0).any(axis=0) | (self.scratch > 0).any(axis=0)
        return ~used

    def most(self, live: int) -> FloatArray:
        """(2,) bytes that no load of at most so many micro-batches passes."""
        total = self.held.sum() + sum(each for _, each in self.shared) + 2 * sum(each for _, each in self.buffers)
        total += self.every_once + self.scratch.max(axis=1, initial=0.0)
        found: FloatArray = total + live * (self.live.sum(axis=1) + self.every_live)
        return found


def operator_bytes(problem: Problem, micro_batch: int, count: Count) -> OperatorBytes:
    """The bytes of one micro-batch's size.

    suite: state of weights, each parameter once in a load; what is saved, for each live micro-batch; buffers of
    what crosses; workspace. released: state of the weights of each operator and what it saves of one micro-batch,
    added once; nothing on a CPU counts (its limit is `unlimited`).
    """
    graph = problem.profile.graph
    formula = Formula(problem.regime, problem.mini_batch)
    names = (CPU if CPU in problem.cluster.devices else accelerator_type(problem), accelerator_type(problem))
    costs = [problem.profile.on(name) for name in names]
    terms = [PlainTerms(graph, OperatorTimes(each)).at(micro_batch) for each in costs]
    every = formula.every_stage()
    operators = len(graph.operators)
    held, none = np.zeros(operators), np.zeros((2, operators))
    if count == "released":
        weights = np.array(graph.weight_bytes, np.int64)
        saved: FloatArray = np.array([each.saved_bytes_per_sample for each in costs[1].operators]) * micro_batch
        held += formula.state_bytes(weights, 1) - formula.state_bytes(0, 1)
        held += formula.live_bytes(saved) - formula.live_bytes(0)
        return OperatorBytes(held, none, none, np.full(2, float(every.peak(1))), np.zeros(2), (), ())
    users: dict[str, set[int]] = {}
    for position, operator in enumerate(graph.operators):
        for name in operator.parameters:
            users.setdefault(name, set()).add(position)
    shared = []
    for name, positions in users.items():
        state = float(formula.state_bytes(graph.parameter_bytes[name], 1) - formula.state_bytes(0, 1))
        if len(positions) > 1:
            shared.append((tuple(sorted(positions)), state))
        else:
            held[next(iter(positions))] += state
    live = np.stack([formula.live_bytes(each.saved_bytes) - formula.live_bytes(0) for each in terms])
    buffers = tuple(
        (tuple(sorted({producer, *readers})), float(exchanged))
        for producer, readers, exchanged in zip(
            graph.producers, graph.consumers, terms[1].exchanged_bytes.tolist(), strict=True
        )
        if producer >= 0 and exchanged
    )
    return OperatorBytes(
        held=held,
        live=live.astype(np.float64),
        scratch=np.stack([each.workspace_bytes for each in terms]).astype(np.float64),
        every_once=np.full(2, float(every.once)),
        every_live=np.full(2, float(every.per_micro_batch)),
        shared=tuple(shared),
        buffers=buffers,
    )


def memory_tables(
    problem: Problem, figures: NodeCosts, amounts: OperatorBytes, rows: Words, most_live: int
) -> MemoryTables:
    """The tables of the kernel over these downsets."""
    node_of = {operator: node for node, members in enumerate(figures.members) for operator in members}
    nodes = len(figures.members)
    inside = [list(members) for members in figures.members]
    held = np.array([amounts.held[each].sum() for each in inside])
    live = np.array([amounts.live[:, each].sum(axis=1) for each in inside]).T
    shared: list[tuple[list[int], float]] = []
    for users, state in amounts.shared:
        ends = sorted({node_of[each] for each in users})
        if len(ends) > 1:
            shared.append((ends, state))
        else:
            held[ends[0]] += state
    crossing: dict[tuple[int, ...], float] = {}
    for joined, exchanged in amounts.buffers:
        key = tuple(sorted({node_of[each] for each in joined}))
        if len(key) > 1:
            crossing[key] = crossing.get(key, 0.0) + exchanged
    edges, values = node_sets(list(crossing), nodes), np.array(list(crossing.values()))
    cut = cut_edges(rows, edges)
    sums = downset_sums(rows, np.stack([held, *live]))
    scratch = np.array([amounts.scratch[:, each].max(axis=1) for each in inside]).T
    return MemoryTables(
        held=sums[0],
        live=np.ascontiguousarray(sums[1:]),
        every_once=amounts.every_once,
        every_live=amounts.every_live,
        most_live=min(most_live, ENDLESS),
        cut=cut,
        edges=edges,
        values=values,
        cut_sums=downset_sums(cut, values[None, :])[0] if len(values) else np.zeros(len(rows)),
        relay=problem.regime.mode == "async",
        shared=node_sets([ends for ends, _ in shared], nodes),
        shared_bytes=np.array([state for _, state in shared], np.float64),
        scratch=np.ascontiguousarray(scratch),
        plain=not (crossing or shared or scratch.any()),
    )
