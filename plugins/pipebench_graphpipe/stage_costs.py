"""Periods and memory of every stage in the space at given micro-batch sizes and numbers of replicas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.formula import Holdings
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.rings import fastest_ring
from pipebench_graphpipe.chain_dp import NO_LIMIT, Depths
from pipebench_graphpipe.program import GraphArrays, ProgramArrays, Values, measure

Size = tuple[int, tuple[int, ...]]
"""A micro-batch size and the numbers of replicas to choose from."""
FIGURES = 4
"""Columns for each number of replicas: period, saved, inputs, buffers."""


def columns_of(sizes: Sequence[Size]) -> int:
    """Columns of the table in which the program measures these sizes."""
    return 1 + FIGURES * sum(len(replicas) for _, replicas in sizes)


def values_of(model: CostModel, sizes: Sequence[Size], recompute: bool) -> Values:
    """Columns: those of _figures for every size, then parameters."""
    graph = model.graph
    each = [_figures(model, micro_batch, replicas, recompute) for micro_batch, replicas in sizes]
    operators, received, sent = (np.concatenate(tables, axis=1) for tables in zip(*each, strict=True))
    width = operators.shape[1] + 1
    parameters = np.zeros((len(graph.parameters), width), np.int64)
    parameters[:, -1] = [parameter.bytes for parameter in graph.parameters]
    return Values(_wider(operators), parameters, _wider(received), _wider(sent), _scratch(model))


def _scratch(model: CostModel) -> IntArray:
    """Workspace of each operator. Where replicas share out weights, those of the operator and the most workspace:
    together at least what any stage with it needs.
    """
    workspace = model.terms(1).workspace_bytes
    if not model.problem.regime.shards_weights:
        return workspace
    gathered: IntArray = model.formula.gathered_bytes(np.array(model.graph.weight_bytes, np.int64))
    return gathered + int(workspace.max())


def _wider(table: IntArray) -> IntArray:
    return np.pad(table, ((0, 0), (0, 1)))


def _figures(
    model: CostModel, micro_batch: int, replicas: tuple[int, ...], recompute: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Of operators, of tensors received and sent: period, saved, inputs, buffers, each for every number of
    replicas.
    """
    graph, problem = model.graph, model.problem
    choices = len(replicas)
    width = FIGURES * choices
    operators = np.zeros((len(graph.operators), width), np.int64)
    received = np.zeros((len(graph.tensors), width), np.int64)
    sent = np.zeros((len(graph.tensors), width), np.int64)
    link = problem.cluster.flat(problem.cluster.size)
    whole, message_ns = model.terms(micro_batch), model.formula.message_ns
    for choice, used in enumerate(replicas):
        local = model.terms(-(-micro_batch // used))
        operators[:, choice] = local.forward_ns * (2 if recompute else 1) + local.backward_ns
        operators[:, choices + choice] = local.saved_bytes
        sent[:, choice] = message_ns(link, whole.tensor_bytes, used, used)
        sent[:, choice] += message_ns(link, whole.gradient_bytes, used, used)
        received[:, 2 * choices + choice] = local.tensor_bytes
        for side in (received, sent):
            side[:, 3 * choices + choice] = local.exchanged_bytes
    received[np.array(graph.producers) < 0, 3 * choices :] = 0
    return operators, received, sent


@dataclass(frozen=True, slots=True)
class StageCosts:
    """Tables of all stages, shape (slots, replica choices).

    period_ns: forward, backward, what leaves the stage in both directions, and its share of the all-reduce.
    once_bytes: on each device, whatever is in flight.
    each_bytes: more for each micro-batch in flight.
    """

    micro_batch: int
    micro_batches: int
    replicas: tuple[int, ...]
    period_ns: IntArray
    once_bytes: IntArray
    each_bytes: IntArray

    def most_live(self, memory_bytes: int) -> Depths:
        """The largest depth at which each stage fits; 0 for none. The mini-batch bounds what is in flight."""
        room = memory_bytes - self.once_bytes
        depth = np.where(room >= 0, room // np.maximum(self.each_bytes, 1), 0)
        endless = (depth >= self.micro_batches) | ((self.each_bytes == 0) & (room >= 0))
        return np.where(endless, NO_LIMIT, depth).astype(np.int32)

    def bytes_at(self, slot: int, choice: int, depth: int) -> int:
        """Peak bytes on a device of a stage of that depth."""
        live = min(depth, self.micro_batches)
        return int(self.once_bytes[slot, choice] + live * self.each_bytes[slot, choice])


def stage_costs(
    model: CostModel,
    program: ProgramArrays,
    slots: int,
    graph: GraphArrays,
    sizes: Sequence[Size],
    recompute: bool = False,
) -> Iterator[StageCosts]:
    """The tables at each size; all are measured in one run of the program.

    recompute: every stage keeps its inputs only and runs forward again.
    Source of the period: GraphPipe section 5, base case; communication not hidden, all-reduce amortised.
    """
    sums, workspace = measure(program, graph, values_of(model, sizes, recompute), slots)
    first = 0
    for micro_batch, replicas in sizes:
        width = FIGURES * len(replicas)
        yield _tables(
            model, micro_batch, replicas, sums[:, first : first + width], sums[:, -1], workspace, recompute
        )
        first += width


def _tables(
    model: CostModel,
    micro_batch: int,
    replicas: tuple[int, ...],
    sums: IntArray,
    parameter_bytes: IntArray,
    workspace: IntArray,
    recompute: bool,
) -> StageCosts:
    problem, choices = model.problem, len(replicas)
    period, saved, inputs, buffers = (sums[:, at * choices : (at + 1) * choices] for at in range(FIGURES))
    parameters = np.ascontiguousarray(parameter_bytes)
    formula = model.formula
    state, period = np.empty_like(period), period.copy()
    for choice, used in enumerate(replicas):
        state[:, choice] = formula.state_bytes(parameters, used)
        links = fastest_ring(problem.cluster, problem.regime, used)
        update_ns = formula.update_ns(formula.reduce_ns(links, parameters, used), parameters, used)
        period[:, choice] += formula.update_share_ns(update_ns, micro_batch)
    none = np.zeros((1, 1), np.int64)
    content = Holdings(state, saved, inputs, buffers, workspace[:, None], none, none, none)
    memory = formula.memory(content, "stage" if recompute else "none")
    return StageCosts(
        micro_batch=micro_batch,
        micro_batches=problem.mini_batch // micro_batch,
        replicas=replicas,
        period_ns=period,
        once_bytes=memory.held + memory.while_live + memory.workspace,
        each_bytes=np.ascontiguousarray(memory.per_micro_batch),
    )
