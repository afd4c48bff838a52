"""How many replicas a stage may have."""

from collections.abc import Sequence

from pipebench.algorithms.micro_batches import divisors
from pipebench.domain.problem import Problem


def replica_counts(devices: int) -> tuple[int, ...]:
    """Powers of two up to the number of devices, and its divisors; ascending.

    Powers of two divide micro-batches and nodes, divisors share out all devices.
    """
    powers = (2**power for power in range(devices.bit_length()))
    return tuple(sorted({*powers, *divisors(devices, devices)}))


def near_profiled(problem: Problem, micro_batch: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Those of `counts` that leave each replica no more samples than the largest profiled micro-batch.

    All of them where none does, and where one size was profiled (times are proportional) or the micro-batch
    is pinned.
    """
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    if len(profiled) == 1 or problem.pins.micro_batch is not None:
        return tuple(counts)
    near = tuple(count for count in counts if -(-micro_batch // count) <= profiled[-1])
    return near or tuple(counts)
