"""Times of nights: segments, what is told, what ends it, what is measured again."""

import math
import random
from collections.abc import Sequence

import pytest

from pipebench.track.judgement import speeds as speeds_module
from pipebench.track.judgement.speeds import NO_PAIR, DatedRatio, speeds, suspicion, time_events
from pipebench.track.nights.night import Night, PairedRatios
from tests.track.made_nights import FINGERPRINT, measured, night, paired


def history(*levels: float, again: float | None = None, noise: float = 0.01) -> list[Night]:
    draw = random.Random(3)
    return [
        night(i, measured(5.0 * level * math.exp(draw.gauss(0.0, noise)), again and 5.0 * again))
        for i, level in enumerate(levels)
    ]


def test_until_there_is_enough_history_it_is_said_how_much_there_is() -> None:
    found = speeds(history(*[1.0] * 4))
    assert [each.state for each in found] == ["not enough history (3 of 30)"]
    assert len(found[0].series) == 4
    assert found[0].change is None
    assert time_events(history(*[1.0] * 20, *[3.0] * 5), "m") == []


def test_a_slower_planner_is_an_open_event_that_names_revisions() -> None:
    nights = history(*[1.0] * 31, *[1.2] * 3)
    event = time_events(nights, "m")[0]
    assert (event.outcome, event.state, event.kind) == ("worse", "open", "time")
    assert (event.began, event.told) == (nights[31].recorded_at, nights[33].recorded_at)
    assert (event.before, event.after) == ("r30", "r31")
    assert speeds(nights)[0].state == "slower"
    assert speeds(nights)[0].steps == (31,)


def test_its_identity_stays_while_its_date_is_refined() -> None:
    early, late = (time_events(history(*[1.0] * 31, *[1.2] * count), "m")[0] for count in (3, 10))
    assert early.identity == late.identity


def test_a_planner_that_is_fast_again_is_over() -> None:
    events = time_events(history(*[1.0] * 31, *[1.2] * 6, *[1.0] * 6), "m")
    assert [(event.outcome, event.state) for event in events] == [("worse", "over"), ("better", "told")]


def test_a_little_better_is_not_over() -> None:
    events = time_events(history(*[1.0] * 31, *[1.6] * 8, *[1.3] * 8), "m")
    assert [(event.outcome, event.state) for event in events] == [("worse", "open"), ("better", "told")]


def test_a_new_segment_has_no_history_and_ends_what_was_open() -> None:
    newer = FINGERPRINT | {"numpy": "3.0"}
    nights = [*history(*[1.0] * 31, *[1.2] * 3), night(40, measured(9.0, fingerprint=newer))]
    assert speeds(nights)[0].state == "not enough history (0 of 30)"
    event = time_events(nights, "m")[0]
    assert event.state == "over"
    assert "new segment" in event.reason


def test_other_calibrations_are_another_unit() -> None:
    nights = [*history(*[1.0] * 31), night(40, measured(paired=paired(9.0, calibration="other")))]
    assert speeds(nights)[0].state == "not enough history (0 of 30)"


def test_a_subject_without_warm_searches_is_not_timed() -> None:
    assert [each.state for each in speeds([night(0, measured())])] == ["not timed"]


def test_only_what_is_far_off_is_measured_again() -> None:
    nights = history(*[1.0] * 30)
    suspicious = suspicion(nights)
    assert suspicious(measured(5.0 * 1.3))
    assert not suspicious(measured(5.0 * 1.02))
    assert not suspicion(nights[:20])(measured(5.0 * 1.3))
    assert not suspicious(measured())


def test_the_history_is_looked_through_once_for_all_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each: 20 subjects after 700 nights took 6 s."""
    looked: list[int] = []
    nights, found = history(*[1.0] * 30), speeds_module.segments_of

    def counted(of: Sequence[Night]) -> dict[tuple[str, str], list[DatedRatio]]:
        looked.append(len(of))
        return found(of)

    monkeypatch.setattr(speeds_module, "segments_of", counted)
    suspicious = suspicion(nights)
    assert [suspicious(measured(5.0 * ratio)) for ratio in (1.3, 1.0, 1.3, 1.0)] == [True, False, True, False]
    assert looked == [30]


def test_a_night_on_a_machine_too_busy_is_said_and_leaves_the_series_alone() -> None:
    busy = PairedRatios(rounds={}, calibration="c", discarded=45, imprecise=True)
    nights = [*history(*[1.0] * 31), night(31, measured(paired=busy))]
    found = speeds(nights)[0]
    assert (found.state, found.imprecise, found.discarded) == (NO_PAIR, True, 45)
    assert time_events(nights, "m") == []
    assert not suspicion(nights)(measured(paired=busy))


def drifting(
    nights: int, slope: float = 0.003, steady: int = 60, after: int = 0, level: float = 1.0
) -> list[Night]:
    """Steady nights, a drift, and nights at `level`."""
    return history(*[1.0] * steady, *[(1 + slope) ** (n + 1) for n in range(nights)], *[level] * after)


def test_a_drift_is_an_open_event_that_names_the_revisions_between_which_it_began() -> None:
    event = time_events(drifting(20), "m")[0]
    assert (event.outcome, event.state, event.subject) == ("worse", "open", "mine on tiny, 4 x flat, sync")
    assert event.a_night is not None
    assert 0.001 < event.a_night[0] <= 0.003 <= event.a_night[1] < 0.008
    assert event.change is not None
    assert 0.03 < event.change < 0.06
    assert event.over_best is not None
    assert 0.03 < event.over_best < 0.08
    first, last = int(event.before.removeprefix("r")), int(event.after.removeprefix("r"))
    assert first < 60 <= last
    began = round_of(event.began)
    assert first < began - 1 or last > began
    assert speeds(drifting(20))[0].steps == (round_of(event.began),)


def round_of(moment: str) -> int:
    return next(i for i, each in enumerate(drifting(20)) if each.recorded_at == moment)


def test_a_drift_that_was_mended_is_over() -> None:
    assert time_events(drifting(20, after=8), "m")[0].state == "open"
    event = time_events(drifting(20, after=30), "m")[0]
    assert (event.state, event.reason) == ("over", "as fast as before again")
    assert time_events(drifting(20, after=30, level=1.06), "m")[0].state == "open"


def test_an_acknowledged_change_starts_the_anchor_anew_and_no_other_does() -> None:
    nights = drifting(70)
    first, second, *_ = (event for event in time_events(nights, "m"))
    assert first.over_best is not None
    assert second.over_best is not None
    assert second.over_best > first.over_best + 0.05
    again = time_events(nights, "m", {first.identity})
    assert [event.identity for event in again] == [event.identity for event in time_events(nights, "m")]
    assert again[0].over_best == first.over_best
    assert again[1].over_best is None or again[1].over_best < second.over_best - 0.03
