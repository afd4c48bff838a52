"""Interval DP: a chain cut into stages of given sizes, least sum of times + (B - 1) times the largest.

Source: Alpa (OSDI 2022), section 5.2: for each bound on the largest time the least sum over stages, devices and
the stages still to come, which tell how many micro-batches a stage keeps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray

GAP = 1e-12


@dataclass(frozen=True, slots=True)
class IntervalCut:
    """A cut of the chain into stages.

    stages: (first, end, option) of each.
    total_s: the sum of their times.
    largest_s: the largest of them.
    """

    stages: tuple[tuple[int, int, int], ...]
    total_s: float
    largest_s: float
    objective_s: float


@kernel
def least_sums(
    times: FloatArray, deepest: IntArray, sizes: IntArray, bound: float, sums: FloatArray, link: NDArray[np.int32]
) -> int:
    """Fill sums (stages + 1, positions + 1, devices + 1): the least sum of exactly so many stages and devices.

    times: (positions, positions + 1, options) of the interval from i to before e, inf where it cannot be.
    deepest: as large, the most stages that may come behind it (-1: none, it does not fit). link: the end and
    the option of the first stage. Returns transitions tried.
    """
    count, _, options = times.shape
    devices = sums.shape[2] - 1
    tried = 0
    sums[:] = np.inf
    sums[0, count, 0] = 0.0
    for stages in range(1, sums.shape[0]):
        for first in range(count - 1, -1, -1):
            for end in range(first + 1, count + 1):
                for option in range(options):
                    time = times[first, end, option]
                    if time > bound or stages - 1 > deepest[first, end, option]:
                        continue
                    for used in range(sizes[option], devices + 1):
                        tried += 1
                        total = sums[stages - 1, end, used - sizes[option]] + time
                        if total < sums[stages, first, used]:
                            sums[stages, first, used] = total
                            link[stages, first, used, 0] = end
                            link[stages, first, used, 1] = option
    return tried


def best_cut(
    times: FloatArray, deepest: IntArray, sizes: IntArray, devices: int, micro_batches: int
) -> tuple[IntervalCut | None, dict[str, int]]:
    """The cut that uses all devices and has the least objective, and what was tried.

    Bounds are the times themselves, ascending, from the smallest that any cut meets; a bound t is not worth
    trying once the least sum at all + (B - 1) t reaches the best objective so far.
    """
    count = times.shape[0]
    most = min(count, devices)
    sums = np.empty((most + 1, count + 1, devices + 1))
    link = np.zeros((most + 1, count + 1, devices + 1, 2), np.int32)
    bounds = np.unique(times[np.isfinite(times) & (deepest >= 0)])
    counters = {"bounds": 0, "transitions": 0}

    def least(bound: float) -> float:
        counters["bounds"] += 1
        counters["transitions"] += int(least_sums(times, deepest, sizes, bound, sums, link))
        return float(sums[:, 0, devices].min())

    if not len(bounds) or not np.isfinite(floor := least(np.inf)):
        return None, counters
    low, high = 0, len(bounds) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if np.isfinite(least(bounds[middle])) else (middle + 1, high)
    best: IntervalCut | None = None
    for bound in bounds[low:]:
        if best is not None and floor + (micro_batches - 1) * bound >= best.objective_s * (1 - GAP):
            break
        least(float(bound))
        found = _cut(times, sizes, sums, link, devices, micro_batches)
        if best is None or found.objective_s < best.objective_s:
            best = found
    return best, counters


def _cut(
    times: FloatArray,
    sizes: IntArray,
    sums: FloatArray,
    link: NDArray[np.int32],
    devices: int,
    micro_batches: int,
) -> IntervalCut:
    left, first, used = int(np.argmin(sums[:, 0, devices])), 0, devices
    stages = []
    while left > 0:
        end, option = map(int, link[left, first, used])
        stages.append((first, end, option))
        left, first, used = left - 1, end, used - int(sizes[option])
    each = [float(times[stage]) for stage in stages]
    return IntervalCut(tuple(stages), sum(each), max(each), sum(each) + (micro_batches - 1) * max(each))
