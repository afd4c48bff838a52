"""Stage times as Piper's released planner counts them, which are not the suite's.

A stage takes the sum of its compute, of the tensors that cross into it and out of it, and of its weight
synchronisation. Latencies are left out. Source: Piper (NeurIPS 2021), section 3, and the released code.
"""

from pipebench.costs.compute import OperatorTimes
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.graph import Tensor
from pipebench.domain.profile import Alternative


def compute_s(times: OperatorTimes, node: int, alternative: Alternative | None, samples: int) -> float:
    """Forward and backward of one operator, in the profile's seconds where it tells one size only."""
    costs = times.costs
    if len(costs.micro_batches) == 1:
        each = alternative or costs.operators[node]
        return (each.forward_s[0] + each.backward_s[0]) * (samples / costs.micro_batches[0])
    forward, backward, _ = times.chosen(node, "" if alternative is None else alternative.id, samples)
    return (forward + backward) / NS_PER_S


def synchronisation_s(weights_bytes: int, replicas: int, micro_batches: int, bandwidth_bytes_s: float) -> float:
    """4 (d - 1) / d of the weights a mini-batch (the paper's parameter server), spread over its micro-batches."""
    return 4 * (replicas - 1) * weights_bytes / replicas / micro_batches / bandwidth_bytes_s


def crossing_bytes(tensor: Tensor, alternative: Alternative | None, micro_batch: int) -> float:
    """What an edge costs at one end for a micro-batch.

    The tensor and its gradient, and what the alternative at that end adds, once in each direction.
    """
    plain = tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample
    both = plain * micro_batch + tensor.fixed_bytes
    if alternative is not None and tensor.name in alternative.boundary_bytes:
        both += 2 * sum(alternative.boundary_bytes[tensor.name]) * micro_batch
    return both
