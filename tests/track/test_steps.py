"""Dating: the exact fit against brute force, noise alone, and steps whose place is known."""

import itertools
import math
import random
import statistics

import pytest

from pipebench.track.rule.statistics import PENALTY, SHORTEST, _costs, _noise, changes, date_of


def cost(series: list[float], starts: tuple[int, ...]) -> float:
    """Of a segmentation, by definition."""
    penalty = PENALTY * max(_noise(series), 1e-6) * math.log(len(series))
    bounds = [0, *starts, len(series)]
    parts = [series[a:b] for a, b in itertools.pairwise(bounds)]
    return penalty * len(starts) + sum(sum(abs(x - statistics.median(part)) for x in part) for part in parts)


def test_the_fit_is_the_best_of_all_segmentations() -> None:
    draw = random.Random(1)
    found_some = 0
    for _ in range(40):
        count = draw.randint(6, 12)
        cut = draw.randint(0, count)
        series = [draw.gauss(0.0, 0.3) + (4.0 if i >= cut else 0.0) for i in range(count)]
        best = min(
            (cost(series, starts), starts)
            for number in range(count // SHORTEST)
            for starts in itertools.combinations(range(SHORTEST, count), number)
            if all(b - a >= SHORTEST for a, b in itertools.pairwise([0, *starts, count]))
        )
        assert cost(series, tuple(changes(series))) == pytest.approx(best[0])
        found_some += bool(best[1])
    assert found_some > 10


def test_the_running_sum_of_deviations_is_that_of_the_median() -> None:
    draw = random.Random(2)
    for _ in range(50):
        series = [draw.choice([draw.gauss(0, 1), 0.0]) for _ in range(draw.randint(1, 15))]
        wanted = [
            sum(abs(x - statistics.median(series[:k])) for x in series[:k]) for k in range(1, len(series) + 1)
        ]
        assert _costs(series) == pytest.approx(wanted)


@pytest.mark.parametrize("count", [20, 60, 120])
def test_noise_alone_has_no_step_in_ninety_nine_of_a_hundred_series(count: int) -> None:
    draw = random.Random(3)
    assert sum(bool(changes([draw.gauss(0.0, 0.026) for _ in range(count)])) for _ in range(300)) <= 3


def test_a_step_of_a_fifth_is_dated_to_the_night() -> None:
    draw = random.Random(4)
    exact = 0
    for _ in range(100):
        at = draw.randint(30, 50)
        series = [draw.gauss(0.0, 0.026) + (math.log(1.2) if i >= at else 0.0) for i in range(60)]
        exact += date_of(series, since=at + 1, told=at + 3, up=True) == at
    assert exact >= 98


def test_what_the_fit_cannot_see_yet_keeps_the_date_of_the_rule() -> None:
    assert date_of([0.0] * 30 + [0.2], since=30, told=30, up=True) == 30


def test_a_step_the_other_way_dates_nothing() -> None:
    series = [0.2] * 15 + [0.0] * 15
    assert changes(series) == [15]
    assert date_of(series, since=17, told=19, up=True) == 17
    assert date_of(series, since=17, told=19, up=False) == 15


def test_only_the_last_nights_are_fitted() -> None:
    series = [1.0] * 100 + [0.0] * 200 + [1.0] * 10
    assert changes(series) == [300]
