"""Stage times as Piper's released planner counts them, which are not the suite's.

A stage takes the sum of its compute, of the tensors that cross into it and out of it, and of its weight
synchronisation. Latencies are left out. Source: Piper (NeurIPS 2021), section 3, and the released code.
"""

from pipebench.costs.quantise import NS_PER_S, FloatArray, IntArray
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.graph import Tensor
from pipebench.domain.profile import Alternative


def compute_s(times: OperatorTimes, node: int, alternative: Alternative | None, samples: int) -> float:
    """Forward and backward of one operator, in the profile's seconds where it tells one size only."""
    costs = times.costs
    if len(costs.micro_batches) == 1:
        each = alternative or costs.operators[node]
        return (each.forward_s[0] + each.backward_s[0]) * (samples / costs.micro_batches[0])
    forward, backward, _ = times.choice_ns(node, "" if alternative is None else alternative.id, samples)
    return (forward + backward) / NS_PER_S


def synchronisation_s(
    weights_bytes: IntArray, replicas: int, micro_batches: int, bandwidth_bytes_s: float
) -> FloatArray:
    """4 (d - 1) / d of the weights a mini-batch (the paper's parameter server), spread over its micro-batches."""
    seconds: FloatArray = 4 * (replicas - 1) * weights_bytes / replicas / micro_batches / bandwidth_bytes_s
    return seconds


def crossing_s_for_a_byte(replicas: int, bandwidth_bytes_s: float) -> float:
    """Of a micro-batch that crosses into a stage or out of it: its replicas take micro-batches in turn."""
    return 1 / (replicas * bandwidth_bytes_s)


def crossing_bytes(tensor: Tensor, micro_batch: int) -> float:
    """What an edge costs at one end for a micro-batch: the tensor and its gradient."""
    plain = tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample
    return plain * micro_batch + tensor.fixed_bytes


def added_bytes(tensor: Tensor, alternative: Alternative, micro_batch: int) -> float:
    """What an alternative at that end adds, once in each direction."""
    return 2 * sum(alternative.boundary_bytes[tensor.name]) * micro_batch
