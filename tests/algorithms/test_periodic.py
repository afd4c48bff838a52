"""Groups, (+) and the shortest period of a partition: definitions, monotony, closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.chains.one_f_one_b_star import groups, minimal_period, oplus, start_times
from tests.algorithms.enumeration import greedy_groups

durations = st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(lambda d: len(d) % 2 == 1)


def as_array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(0, 9), st.integers(0, 9))
def test_oplus_is_monotone_in_both(delay: int, duration: int, period: int, more: int, longer: int) -> None:
    assert oplus(delay, duration, period) <= oplus(delay + more, duration, period)
    assert oplus(delay, duration, period) <= oplus(delay, duration + longer, period)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))
def test_oplus_as_printed(delay: int, duration: int, period: int) -> None:
    def ceil(x: int) -> int:
        return -(-x // period)

    same = ceil(delay) == ceil(delay + duration)
    assert oplus(delay, duration, period) == (delay + duration if same else period * ceil(delay) + duration)


@given(durations, st.integers(0, 30))
def test_groups_by_definition_and_by_the_recurrence(items: list[int], slack: int) -> None:
    period = max(1, max(items) + slack)
    found = groups(as_array(items), period).tolist()
    assert found == greedy_groups(items, period)
    delay = 0
    recurrence: list[int] = []
    for duration in reversed(items):
        recurrence.insert(0, max(1, -(-(delay + duration) // period)))
        delay = oplus(delay, duration, period)
    assert found == recurrence


@given(durations, st.integers(0, 20), st.integers(0, 20))
def test_groups_only_shrink_when_the_period_grows(items: list[int], slack: int, more: int) -> None:
    period = max(1, max(items) + slack)
    assert (groups(as_array(items), period + more) <= groups(as_array(items), period)).all()


@given(durations, st.data())
def test_minimal_period_is_the_least_sum_of_consecutive_items_that_fits(
    items: list[int], data: st.DataObject
) -> None:
    stages = (len(items) + 1) // 2
    most = data.draw(st.lists(st.integers(0, 4), min_size=stages, max_size=stages))
    sums = {sum(items[i:j]) for i in range(len(items)) for j in range(i + 1, len(items) + 1)}
    valid = [
        period
        for period in {max(1, total) for total in sums if total >= max(items)}
        if all(g <= limit for g, limit in zip(greedy_groups(items, period)[::2], most, strict=True))
    ]
    assert minimal_period(as_array(items), as_array(most)) == min(valid, default=-1)


@pytest.mark.parametrize("stages", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("transfer", [0, 1, 4, 10])
def test_closed_forms_of_uniform_chains(stages: int, transfer: int) -> None:
    # notes/madpipe.md section 9: u = 10 a stage, c a cut, 0 < c <= u.
    work, c = 10, transfer
    items = as_array(([work, c] * stages)[:-1])
    from_end = range(stages, 0, -1)

    def live(period: int) -> list[int]:
        return [int(g) for g in groups(items, period)[::2]]

    assert minimal_period(items, as_array([99] * stages)) == work
    assert live(work) == [2 * (i - 1) + 1 if c else i for i in from_end]
    assert live(work + c) == [*from_end]
    assert live(stages * work + (stages - 1) * c) == [1] * stages
    assert minimal_period(items, as_array([1] * stages)) == stages * work + (stages - 1) * c
    assert minimal_period(items, as_array([*from_end])) == work + c
    assert minimal_period(items, as_array([*range(stages, 1, -1), 0])) == -1


def test_start_times_of_the_papers_example_shape() -> None:
    # Stages of 2 + 2, 1 + 2 and 3 + 1 ns without transfers at period 7: groups 2, 1, 1.
    forward, backward = as_array([2, 0, 1, 0, 3]), as_array([2, 0, 2, 0, 1])
    starts = start_times(forward, backward, 7)
    assert groups(forward + backward, 7).tolist() == [2, 1, 1, 1, 1]
    assert starts == ([0, 2, 2, 3, 3], [9, 9, 7, 7, 6])
