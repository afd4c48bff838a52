"""Cuts of a chain into a given number of stages, whose slowest stage (or device) is as fast as can be.

Items are cut between, never inside; bounds are stages + 1 positions from 0 to the number of items.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

Bounds = tuple[int, ...]
Fits = Callable[[int, int, int], bool]
"""(stage, first item, end): whether the stage fits in memory. Fewer items never need more."""


def smallest_bottleneck(times: Sequence[int], stages: int, fits: Fits) -> list[Bounds]:
    """Cuts of the least largest stage time among those that fit: filled from the front, and from the back.

    Exact: bisection over the sums of runs of items, at each of which the positions that every stage can begin and
    end at are found. Every stage gets an item. Empty: none fits.
    """
    total = [0, *accumulate(times)]
    if stages > len(times):
        return []
    sums = sorted(
        {total[end] - total[first] for first in range(len(times)) for end in range(first + 1, len(total))}
    )
    low, high = 0, len(sums) - 1
    if _furthest(total, stages, fits, sums[high]) is None:
        return []
    while low < high:
        middle = (low + high) // 2
        if _furthest(total, stages, fits, sums[middle]) is None:
            low = middle + 1
        else:
            high = middle
    furthest = _furthest(total, stages, fits, sums[low])
    assert furthest is not None
    return list(dict.fromkeys((_bounds(furthest, len(times), max), _bounds(furthest, len(times), min))))


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


def _furthest(total: Sequence[int], stages: int, fits: Fits, most: int) -> list[dict[int, int]] | None:
    """For each stage the positions where it can begin, each with the furthest that it can end; None: no cut.

    A stage that begins later never ends earlier (fewer items fit where more do), so one sweep a stage is enough.
    """
    items, begins = len(total) - 1, [0]
    found: list[dict[int, int]] = []
    for stage in range(stages):
        latest = items - (stages - stage - 1)
        reached: dict[int, int] = {}
        ends: set[int] = set()
        end = 0
        for first in begins:
            end = max(end, first)
            while end < latest and total[end + 1] - total[first] <= most and fits(stage, first, end + 1):
                end += 1
            if end > first:
                reached[first] = end
                ends.update(range(first + 1, end + 1))
        found.append(reached)
        begins = sorted(ends)
    return found if begins and begins[-1] == items else None


def _bounds(furthest: Sequence[dict[int, int]], items: int, pick: Callable[[Iterable[int]], int]) -> Bounds:
    """From the last stage to the first: of the positions where it can begin, the last (max) or the first (min)."""
    bounds = [items]
    for reached in reversed(furthest):
        end = bounds[-1]
        bounds.append(pick(first for first, reach in reached.items() if first < end <= reach))
    return tuple(reversed(bounds))


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
