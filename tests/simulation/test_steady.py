"""The exact steady-state period, on tables of ends made by hand."""

import numpy as np
import pytest

from pipebench.simulation.periodic import mean_period, steady_period

ONE_PART = np.zeros(2, np.int64)


def table(steps: list[int], repetitions: int, transient: int = 0) -> np.ndarray:
    """Two entries that grow by these steps in turn, the second 3 ns behind, the first late at the start."""
    first = np.cumsum([steps[i % len(steps)] for i in range(repetitions)])
    ends = np.stack([first, first + 3], axis=1)
    ends[:transient, 0] += np.arange(transient, 0, -1)
    return ends


@pytest.mark.parametrize(("steps", "period"), [([7], 7), ([4, 5], 5), ([4, 4], 4), ([1, 2, 5], 3), ([3, 3, 4], 4)])
def test_settled_runs(steps: list[int], period: int) -> None:
    assert steady_period(table(steps, 20), 4, ONE_PART) == period
    assert steady_period(table(steps, 20, transient=3), 4, ONE_PART) == period


def test_a_run_that_has_not_settled_is_not_given_a_period() -> None:
    assert steady_period(table([7], 20, transient=18), 4, ONE_PART) is None
    assert steady_period(table([7], 4), 4, ONE_PART) is None
    drifting = np.stack([np.arange(20) * 7, np.arange(20) * 6], axis=1)
    assert steady_period(drifting, 4, ONE_PART) is None


def test_parts_keep_their_own_pace_and_the_slowest_counts() -> None:
    ends = np.stack([np.arange(20) * 7, np.arange(20) * 6], axis=1)
    assert steady_period(ends, 4, np.array([0, 1])) == 7


def test_the_mean_stands_in_for_a_run_that_has_not_settled() -> None:
    """From repetition 10 to 19 the later entry gains 9 x 7 ns, which is 7 each."""
    assert mean_period(table([7], 20, transient=18)) == 7
    assert mean_period(table([4, 5], 21)) == 5
