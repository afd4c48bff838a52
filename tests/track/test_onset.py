"""When a change began: exact without noise, and with noise within the dates that are given."""

import math
import random

import pytest

from pipebench.track.rule.onset import LONGEST, find_onset


def ramp(before: int, after: int, slope: float) -> list[float]:
    return [0.0] * before + [slope * number for number in range(1, after + 1)]


@pytest.mark.parametrize("before", [5, 40, 90])
def test_a_drift_without_noise_is_dated_and_measured_exactly(before: int) -> None:
    found = find_onset(ramp(before, 20, 0.003), spread=1e-9)
    assert (found.shape, found.began, found.earliest, found.latest) == ("drift", before, before, before)
    assert (found.slope, *found.slopes) == pytest.approx((0.003, 0.003, 0.003))
    assert found.level == pytest.approx(0.06)


def test_a_step_without_noise_is_dated_and_measured_exactly() -> None:
    found = find_onset([0.1] * 40 + [0.2] * 12, spread=1e-6, first=7)
    assert (found.shape, found.began, found.earliest, found.latest) == ("step", 47, 47, 47)
    assert (found.level, found.slope, found.slopes) == (pytest.approx(0.2), 0.0, (0.0, 0.0))


def test_what_may_be_either_is_a_drift_and_the_dates_of_both_are_possible() -> None:
    series = ramp(40, 10, 0.005)
    assert find_onset(series, spread=0.025).shape == "drift"
    narrow, wide = (find_onset(series, spread=spread) for spread in (1e-4, 0.025))
    assert wide.earliest < narrow.earliest <= narrow.latest < wide.latest


def test_it_is_a_step_only_where_that_is_clearly_the_better_fit() -> None:
    series = [0.0] * 40 + [0.03] * 6
    assert find_onset(series, spread=1e-4).shape == "step"
    assert find_onset(series, spread=0.025).shape == "drift"


def test_a_wild_night_does_not_date() -> None:
    series = ramp(40, 20, 0.003)
    series[20] += 1.0
    assert abs(find_onset(series, spread=0.001).began - 40) <= 1


def test_only_the_last_nights_are_looked_at() -> None:
    series = [0.5] * 20 + ramp(LONGEST, 20, 0.01)
    assert find_onset(series, spread=1e-6).began == LONGEST + 20


@pytest.mark.parametrize("nights", [10, 20])
def test_night_and_slope_are_within_what_is_said_in_nine_of_ten_histories(nights: int) -> None:
    draw = random.Random(5)
    slope = math.log(1.003)
    held = sloped = 0
    for _ in range(150):
        clean = ramp(60, nights, slope)
        found = find_onset([value + draw.gauss(0.0, 0.025) for value in clean], spread=0.025)
        held += found.earliest <= 60 <= found.latest
        sloped += found.shape == "step" or found.slopes[0] <= slope <= found.slopes[1]
        assert found.slopes[0] <= found.slope <= found.slopes[1]
    assert held >= 0.9 * 150
    assert sloped >= 0.9 * 150
