"""Cuts of a chain into a given number of stages, whose slowest stage (or device) is as fast as can be.

Items are cut between, never inside; bounds are stages + 1 positions from 0 to the number of items.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

Bounds = tuple[int, ...]
Fits = Callable[[int, int, int], bool]
"""(stage, first item, end): whether the stage fits in memory. Fewer items never need more."""


def smallest_bottleneck(times: Sequence[int], stages: int, fits: Fits) -> list[Bounds]:
    """Cuts of the least largest stage time among those that fit: filled from the front, and from the back.

    Exact: bisection over the sums of runs of items, each tried by filling stage after stage as far as it goes,
    which finds a cut wherever there is one because shorter stages fit too. Every stage gets an item. Empty: none
    fits.
    """
    total = [0, *accumulate(times)]
    if stages > len(times):
        return []
    sums = sorted(
        {total[end] - total[first] for first in range(len(times)) for end in range(first + 1, len(total))}
    )
    low, high = 0, len(sums) - 1
    if _filled(total, stages, fits, sums[high]) is None:
        return []
    while low < high:
        middle = (low + high) // 2
        if _filled(total, stages, fits, sums[middle]) is None:
            low = middle + 1
        else:
            high = middle
    front = _filled(total, stages, fits, sums[low])
    back = _filled_back(total, stages, fits, sums[low])
    return [bounds for bounds in dict.fromkeys((front, back)) if bounds is not None]


def level_devices(times: Sequence[int], devices: int, rounds: int, start: Bounds) -> Bounds:
    """Cuts for `rounds` stages a device, stage k on device k % devices: the busiest device as fast as moves make
    it.

    Moves one item from a stage of the busiest device to another stage, every boundary between them by one, as long
    as that lowers the largest load (ties: the sum of squares). A local optimum, exact for equal items.
    """
    total = [0, *accumulate(times)]
    bounds, stages = list(start), devices * rounds
    loads = _loads(total, bounds, devices)
    while True:
        value = max(loads), sum(load * load for load in loads)
        busiest = loads.index(value[0])
        best: tuple[tuple[int, int], list[int], list[int]] | None = None
        for source in range(busiest, stages, devices):
            if bounds[source + 1] - bounds[source] < 2:
                continue
            for target in range(stages):
                if target % devices == busiest:
                    continue
                changed = _after_move(total, bounds, loads, source, target, devices)
                found = max(changed), sum(load * load for load in changed)
                if found < value and (best is None or found < best[0]):
                    best = found, _moved(bounds, source, target), changed
        if best is None:
            return tuple(bounds)
        _, bounds, loads = best


def equal_bounds(items: int, stages: int) -> Bounds:
    """Stages whose numbers of items differ by at most one."""
    return tuple(stage * items // stages for stage in range(stages + 1))


def _filled(total: Sequence[int], stages: int, fits: Fits, most: int) -> Bounds | None:
    items, bounds = len(total) - 1, [0]
    for stage in range(stages):
        first = end = bounds[-1]
        latest = items - (stages - stage - 1)
        while end < latest and total[end + 1] - total[first] <= most and fits(stage, first, end + 1):
            end += 1
        if end == first:
            return None
        bounds.append(end)
    return tuple(bounds) if bounds[-1] == items else None


def _filled_back(total: Sequence[int], stages: int, fits: Fits, most: int) -> Bounds | None:
    bounds = [len(total) - 1]
    for stage in reversed(range(stages)):
        first = end = bounds[-1]
        while first > stage and total[end] - total[first - 1] <= most and fits(stage, first - 1, end):
            first -= 1
        if end == first:
            return None
        bounds.append(first)
    return tuple(reversed(bounds)) if bounds[-1] == 0 else None


def _loads(total: Sequence[int], bounds: Sequence[int], devices: int) -> list[int]:
    loads = [0] * devices
    for stage in range(len(bounds) - 1):
        loads[stage % devices] += total[bounds[stage + 1]] - total[bounds[stage]]
    return loads


def _after_move(
    total: Sequence[int], bounds: Sequence[int], loads: list[int], source: int, target: int, devices: int
) -> list[int]:
    """The loads after one item less in `source` and one more in `target`: each boundary between hands one over."""
    made = loads.copy()
    if source < target:
        for boundary in range(source + 1, target + 1):
            item = total[bounds[boundary]] - total[bounds[boundary] - 1]
            made[(boundary - 1) % devices] -= item
            made[boundary % devices] += item
    else:
        for boundary in range(target + 1, source + 1):
            item = total[bounds[boundary] + 1] - total[bounds[boundary]]
            made[boundary % devices] -= item
            made[(boundary - 1) % devices] += item
    return made


def _moved(bounds: Sequence[int], source: int, target: int) -> list[int]:
    made = list(bounds)
    step = -1 if source < target else 1
    for boundary in range(min(source, target) + 1, max(source, target) + 1):
        made[boundary] += step
    return made
