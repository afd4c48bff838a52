"""The rule on seeded synthetic histories: false alarms, power, and what it makes of a change once told."""

import math
import random

import pytest

from pipebench.track.rule.rule import WINDOW, RatioPoint, Reading, needs_rerun, readings


def series(draw: random.Random, levels: list[float], noise: float) -> list[RatioPoint]:
    """A night for each level. Every night has a rerun: the rule looks at it only where the night is far off."""

    def measure(level: float) -> float:
        return 5.0 * level * math.exp(draw.gauss(0.0, noise))

    return [RatioPoint(measure(level), measure(level)) for level in levels]


def most_alarms(nights: int) -> int:
    """So many, at a rate of 0.1 %, are exceeded with a chance of at most 5 % (binomial)."""
    chance = total = 0.999**nights
    count = 0
    while total < 0.95:
        chance *= (nights - count) / (count + 1) * 0.001 / 0.999
        count += 1
        total += chance
    return count


@pytest.mark.parametrize(("step", "state"), [(1.2, "slower"), (1 / 1.2, "faster")])
def test_a_fifth_is_found_within_three_nights(step: float, state: str) -> None:
    draw = random.Random(9)
    found = 0
    for _ in range(400):
        after = readings(series(draw, [1.0] * WINDOW + [step] * 3, 0.026))[WINDOW:]
        found += any(reading.state == state for reading in after)
    assert found >= 0.95 * 400


def test_a_fifth_is_found_within_three_nights_where_no_rerun_was_possible() -> None:
    draw = random.Random(10)
    found = 0
    for _ in range(400):
        points = [RatioPoint(point.ratio) for point in series(draw, [1.0] * WINDOW + [1.2] * 3, 0.026)]
        found += any(reading.alarm for reading in readings(points))
    assert found >= 0.95 * 400


def test_a_change_is_told_once_and_the_baseline_moves_with_it() -> None:
    draw = random.Random(11)
    soon, later = [], 0
    for _ in range(100):
        found = readings(series(draw, [1.0] * WINDOW + [1.2] * 60, 0.026))
        soon.append(sum(reading.alarm for reading in found[: WINDOW + 30]))
        later += sum(reading.alarm for reading in found[WINDOW + 30 :])
        assert found[-1].known == WINDOW
    assert sum(count == 1 for count in soon) >= 97
    assert later <= most_alarms(100 * 30)


@pytest.mark.parametrize("slow", range(3, 13))
def test_a_slower_revision_that_is_taken_back_is_told_twice_and_no_more(slow: int) -> None:
    """Slower and faster again: nights before the first of two changes keep the level that both make together."""
    draw = random.Random(12)
    for _ in range(20):
        found = readings(series(draw, [1.0] * WINDOW + [1.5] * slow + [1.0] * 40, 0.01))
        told = [(night, reading.state) for night, reading in enumerate(found) if reading.alarm]
        assert told == [(WINDOW, "slower"), (WINDOW + slow, "faster")]


def test_a_quiet_history_says_how_much_is_missing_and_then_nothing() -> None:
    found = readings([RatioPoint(5.0)] * (WINDOW + 5))
    assert [reading.known for reading in found[:3]] == [0, 1, 2]
    assert {reading.state for reading in found[:WINDOW]} == {"not enough history"}
    assert {reading.state for reading in found[WINDOW:]} == {"steady"}


def steady_then(*ratios: float, again: float | None = None) -> list[Reading]:
    """A month with a spread of one percent, then nights as given."""
    draw = random.Random(12)
    month = [RatioPoint(5.0 * math.exp(draw.gauss(0.0, 0.01))) for _ in range(WINDOW)]
    return readings([*month, *(RatioPoint(5.0 * ratio, again and 5.0 * again) for ratio in ratios)])[WINDOW:]


def test_one_night_far_off_counts_only_when_a_rerun_confirms_it() -> None:
    assert steady_then(1.3)[0].state == "suspicious"
    assert steady_then(1.3, again=1.0)[0].state == "suspicious"
    assert steady_then(1.3, again=0.7)[0].state == "suspicious"
    confirmed = steady_then(1.3, again=1.29)[0]
    assert (confirmed.state, confirmed.since) == ("slower", WINDOW)
    assert confirmed.change == pytest.approx(0.3, abs=0.02)


def test_the_third_night_in_a_row_tells_since_when() -> None:
    found = steady_then(1.07, 1.07, 1.07)
    assert [reading.state for reading in found] == ["suspicious", "suspicious", "slower"]
    assert found[-1].since == WINDOW


@pytest.mark.parametrize("between", [1.0, 1 / 1.07])
def test_nights_that_are_not_in_a_row_or_not_on_one_side_are_no_run(between: float) -> None:
    found = steady_then(1.07, 1.07, between, 1.07)
    assert not any(reading.alarm for reading in found)


def test_less_than_three_percent_is_never_told_however_quiet_the_machine_is() -> None:
    assert not any(
        reading.alarm for reading in readings([RatioPoint(5.0)] * WINDOW + [RatioPoint(5.14, 5.14)] * 200)
    )


@pytest.mark.parametrize(("ratio", "wanted"), [(1.0, False), (1.09, False), (1.12, True), (1 / 1.12, True)])
def test_a_rerun_is_asked_for_where_it_could_confirm(ratio: float, wanted: bool) -> None:
    assert needs_rerun([RatioPoint(5.0)] * WINDOW + [RatioPoint(5.0 * ratio)]) is wanted


def test_no_rerun_without_history() -> None:
    assert not needs_rerun([RatioPoint(5.0)] * (WINDOW - 1) + [RatioPoint(9.0)])
    assert not needs_rerun([RatioPoint(5.0)])
