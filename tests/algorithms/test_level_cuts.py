"""Cuts of a chain, against all cuts."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.chains.level_cuts import equal_bounds, level_devices, smallest_bottleneck

TIMES = st.lists(st.integers(1, 9), min_size=1, max_size=9)


def every(items: int, stages: int) -> list[tuple[int, ...]]:
    return [(0, *inner, items) for inner in combinations(range(1, items), stages - 1)]


def bottleneck(times: list[int], bounds: tuple[int, ...]) -> int:
    return max(sum(times[a:b]) for a, b in pairwise(bounds))


@given(TIMES, st.integers(1, 5), st.data())
def test_the_smallest_bottleneck_of_those_that_fit(times: list[int], stages: int, data: st.DataObject) -> None:
    most = data.draw(st.lists(st.integers(0, 40), min_size=stages, max_size=stages))

    def fits(stage: int, first: int, end: int) -> bool:
        return sum(times[first:end]) + end - first <= most[stage]

    allowed = [
        bounds
        for bounds in every(len(times), stages)
        if all(fits(stage, a, b) for stage, (a, b) in enumerate(pairwise(bounds)))
    ]
    found = smallest_bottleneck(times, stages, fits)
    assert bool(found) == bool(allowed)
    best = min((bottleneck(times, bounds) for bounds in allowed), default=0)
    for bounds in found:
        assert bounds in allowed
        assert bottleneck(times, bounds) == best


def test_of_moves_that_level_alike_the_shortest_is_made() -> None:
    """What is too much in the last of three stages of a device goes to the one before it, not to the first."""
    homes = [(stage % 2,) for stage in range(6)]
    assert level_devices([1] * 9, homes, (0, 1, 2, 3, 4, 5, 9)) == (0, 1, 2, 3, 4, 6, 9)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 6), st.integers(0, 20), st.integers(0, 20))
def test_equal_items_are_levelled_exactly(devices: int, rounds: int, more: int, first: int, last: int) -> None:
    """Equal layers between an embedding and a head of other times: as good as any cut for the busiest device."""
    stages = devices * rounds
    items = stages + more
    times = [10] * items
    times[0] += first
    times[-1] += last
    homes = [(stage % devices,) for stage in range(stages)]
    made = level_devices(times, homes, equal_bounds(items, stages))

    def load(bounds: tuple[int, ...]) -> int:
        loads = [0] * devices
        for stage, (a, b) in enumerate(pairwise(bounds)):
            loads[stage % devices] += sum(times[a:b])
        return max(loads)

    assert all(a < b for a, b in pairwise(made))
    if len(list(every(items, stages))) < 3000:
        assert load(made) == min(map(load, every(items, stages)))


def test_no_cut_for_more_stages_than_items() -> None:
    assert smallest_bottleneck([1, 2], 3, lambda *_: True) == []
