"""PipeDream's partition under three readings of its memory estimate, then 1F1B* (notes, section 3)."""

from functools import cache

from pipebench.algorithms.chains.contiguous import partition_at
from pipebench.domain.problem import Problem
from tests.plugins.madpipe.brute_force import chain_of

READINGS = ("p", "decreasing", "released")


def pipedream_period(problem: Problem, reading: str) -> int | None:
    """The period of 1F1B* on the partition with the least max(U, C); None: no partition, or it does not fit.

    p: every stage keeps P live micro-batches. decreasing: the i-th stage from the end i. released: i - 1, with
    one copy of the weights and no buffers. DP over (stages behind, first layer), exactly P stages or fewer.
    """
    chain, memory, gpus = chain_of(problem), problem.cluster.memory_bytes, problem.cluster.size
    length, cut = chain.length, chain.arrays.cut_ns[0]
    weights = chain.arrays.held // 3
    memory_of, work_ns = cache(chain.memory), cache(chain.work_ns)

    def fits(first: int, end: int, behind: int) -> bool:
        stage = memory_of(first, end)
        live = gpus if reading == "p" else behind
        if reading == "released":
            return (behind - 1) * (stage.per_micro_batch + int(weights[end] - weights[first])) <= memory
        return stage.peak(live) <= memory

    reached: dict[int, tuple[int, tuple[int, ...]]] = {length: (0, (length,))}
    best: tuple[int, tuple[int, ...]] | None = None
    for behind in range(1, gpus + 1):
        following: dict[int, tuple[int, tuple[int, ...]]] = {}
        for end, (value, bounds) in reached.items():
            for first in range(end):
                if fits(first, end, behind):
                    found = max(value, work_ns(first, end), int(cut[first]))
                    if first not in following or found < following[first][0]:
                        following[first] = found, (first, *bounds)
        if 0 in following and (best is None or following[0][0] < best[0]):
            best = following[0]
        reached = following
    partition = partition_at(chain, best[1], memory) if best else None
    return partition.period_ns if partition else None
