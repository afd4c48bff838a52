"""Periods and memory of every stage in the space at one micro-batch size, for each number of replicas.

Equal to what costs.model.CostModel says of the stage in a plan whose neighbours have as many replicas, on a
cluster of one link level.
"""

from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.chain_dp import NO_LIMIT, Depths
from pipebench.costs.arrays import all_reduces_ns, messages_ns, weight_states_bytes, whole_bytes_of
from pipebench.costs.communicate import ring_level
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.measure import GraphArrays, Values, measure
from pipebench_graphpipe.program import ProgramArrays


@dataclass(frozen=True, slots=True)
class StageCosts:
    """Tables of shape (slots, replica choices).

    period_ns: forward, backward, what leaves the stage forward and back, and its share of the all-reduce.
    once_bytes: on each device whatever is in flight; each_bytes: more for each micro-batch in flight.
    """

    micro_batch: int
    micro_batches: int
    replicas: tuple[int, ...]
    period_ns: IntArray
    once_bytes: IntArray
    each_bytes: IntArray

    def most_live(self, memory_bytes: int) -> Depths:
        """The largest depth at which each stage fits; 0: never. The mini-batch bounds what is in flight."""
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
    micro_batch: int,
    replicas: tuple[int, ...],
    recompute: bool = False,
) -> StageCosts:
    """The tables at a micro-batch size. recompute: every stage keeps its inputs only and runs forward again.

    Source of the period: GraphPipe section 5, base case; communication not hidden, all-reduce amortised.
    """
    problem, choices = model.problem, len(replicas)
    values = _values(model, micro_batch, replicas, recompute)
    sums, workspace = measure(program, graph, values, slots)
    period, saved, inputs, buffers = (sums[:, at * choices : (at + 1) * choices] for at in range(4))
    parameters = np.ascontiguousarray(sums[:, -1])
    once = buffers + workspace[:, None] + (saved if recompute else 0)
    for choice, used in enumerate(replicas):
        once[:, choice] += weight_states_bytes(problem.regime, parameters, used)
        reduce_ns = all_reduces_ns(ring_level(problem.cluster, 0, used - 1), parameters, used)
        period[:, choice] += -(-reduce_ns * micro_batch // problem.mini_batch)
    return StageCosts(
        micro_batch=micro_batch,
        micro_batches=problem.mini_batch // micro_batch,
        replicas=replicas,
        period_ns=np.ascontiguousarray(period),
        once_bytes=np.ascontiguousarray(once),
        each_bytes=np.ascontiguousarray(inputs if recompute else saved),
    )


def _values(model: CostModel, micro_batch: int, replicas: tuple[int, ...], recompute: bool) -> Values:
    """Columns: period, saved, inputs, buffers, each for every number of replicas; then parameters."""
    graph, problem = model.graph, model.problem
    choices = len(replicas)
    width = 4 * choices + 1
    operators = np.zeros((len(graph.operators), width), np.int64)
    parameters = np.zeros((len(graph.parameters), width), np.int64)
    parameters[:, -1] = [parameter.bytes for parameter in graph.parameters]
    received = np.zeros((len(graph.tensors), width), np.int64)
    sent = np.zeros((len(graph.tensors), width), np.int64)
    link = problem.cluster.flat(problem.cluster.size)
    costs = model.times.costs.operators
    forward_bytes, gradient_bytes = _bytes(model, micro_batch)
    for choice, used in enumerate(replicas):
        samples = -(-micro_batch // used)
        forward, backward = model.times.at(samples)
        operators[:, choice] = forward * (2 if recompute else 1) + backward
        saved = np.array([c.saved_bytes_per_sample for c in costs]) * samples
        operators[:, choices + choice] = whole_bytes_of(saved)
        local_forward, local_gradient = _bytes(model, samples)
        sent[:, choice] = messages_ns(link, forward_bytes, used, used)
        sent[:, choice] += messages_ns(link, gradient_bytes, used, used)
        received[:, 2 * choices + choice] = local_forward
        for side in (received, sent):
            side[:, 3 * choices + choice] = local_forward + local_gradient
    received[np.array(graph.producers) < 0, 3 * choices :] = 0
    workspace = np.array([c.workspace_bytes for c in costs], np.int64)
    return Values(operators, parameters, received, sent, workspace)


def _bytes(model: CostModel, samples: int) -> tuple[IntArray, IntArray]:
    """Bytes of a message of each tensor, and of its gradient, at that many samples."""
    tensors = range(len(model.graph.tensors))
    forward = np.array([model.tensor_bytes(tensor, samples) for tensor in tensors], np.int64)
    return forward, np.array([model.gradient_bytes(tensor, samples) for tensor in tensors], np.int64)
