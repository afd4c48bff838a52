"""The speed of each subject on one class of machine: where it stands tonight, and the changes that were told."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.domain.value import Value, digest
from pipebench.track.event import Event, identity
from pipebench.track.night import Measured, Night
from pipebench.track.paired import point_of
from pipebench.track.rule import LEVEL_NIGHTS, RUN_CHANGE, WINDOW, Point, Reading, needs_rerun, readings
from pipebench.track.steps import date_of

NO_PAIR = "no pair was of use: the machine was too busy"


class Speed(Value, frozen=True, kw_only=True):
    """One subject tonight. ratio: CPU time over that of the calibration; known: earlier nights of its segment.

    series: the ratios of the segment, oldest first; steps: positions at which a change of level began.
    """

    subject: str
    state: str
    ratio: float | None = None
    change: float | None = None
    known: int = 0
    imprecise: bool = False
    discarded: int = 0
    series: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dated:
    """A ratio with the night it belongs to."""

    night: Night
    point: Point


def segments_of(nights: Sequence[Night]) -> dict[tuple[str, str], list[Dated]]:
    """The ratios by subject and fingerprint, calibration included. The label of a subject is its name."""
    found: dict[tuple[str, str], list[Dated]] = {}
    for night in nights:
        for measured in night.measured:
            point = point_of(measured)
            if point is not None:
                found.setdefault((measured.subject.label, _segment_of(measured)), []).append(Dated(night, point))
    return found


def speeds(nights: Sequence[Night]) -> list[Speed]:
    """Where each subject of the last night stands. nights: of one class of machine, oldest first."""
    if not nights:
        return []
    segments = segments_of(nights)
    return [_speed(measured, segments) for measured in nights[-1].measured]


def time_events(nights: Sequence[Night], machine: str) -> list[Event]:
    """The changes of speed that the rule told on one class of machine."""
    found: list[Event] = []
    latest = {each.subject.label: _segment_of(each) for night in nights for each in night.measured if each.paired}
    planners = {each.subject.label: each.subject.planner for night in nights for each in night.measured}
    for (label, segment), dated in segments_of(nights).items():
        made = _events(dated, label, planners[label], machine)
        if latest[label] != segment:
            made = [_ended(event) for event in made]
        found += made
    return found


def suspicious(nights: Sequence[Night], measured: Measured) -> bool:
    """Whether tonight's ratio of a subject, not yet in the history, is to be measured again at once."""
    point = point_of(measured)
    if point is None:
        return False
    before = segments_of(nights).get((measured.subject.label, _segment_of(measured)), [])
    return needs_rerun([*(each.point for each in before), point])


def _segment_of(measured: Measured) -> str:
    return digest([measured.fingerprint, measured.paired.calibration if measured.paired else ""])


def _speed(measured: Measured, segments: dict[tuple[str, str], list[Dated]]) -> Speed:
    label = measured.subject.label
    point = point_of(measured)
    if measured.paired is None:
        return Speed(subject=label, state="not timed")
    discarded = measured.paired.discarded
    if point is None:
        return Speed(subject=label, state=NO_PAIR, imprecise=True, discarded=discarded)
    dated = segments[label, _segment_of(measured)]
    series = [each.point for each in dated]
    found = readings(series)
    last = found[-1]
    if last.state == "not enough history":
        state = f"not enough history ({last.known} of {WINDOW})"
    elif last.state == "suspicious":
        state = "suspicious, not confirmed"
    else:
        state = last.state
    return Speed(
        subject=label,
        state=state,
        ratio=point.ratio,
        change=last.change if last.known >= WINDOW else None,
        known=last.known,
        imprecise=measured.paired.imprecise,
        discarded=discarded,
        series=tuple(each.ratio for each in series),
        steps=tuple(_began(series, reading, told) for told, reading in enumerate(found) if reading.alarm),
    )


def _began(series: Sequence[Point], reading: Reading, told: int) -> int:
    assert reading.since is not None
    logs = [math.log(each.ratio) for each in series]
    return date_of(logs, reading.since, told, up=reading.change > 0)


def _events(dated: Sequence[Dated], label: str, planner: str, machine: str) -> list[Event]:
    series = [each.point for each in dated]
    alarms = [(told, reading) for told, reading in enumerate(readings(series)) if reading.alarm]
    made = []
    for told, reading in alarms:
        began = _began(series, reading, told)
        worse = reading.change > 0
        over = worse and _back(series, reading, [each for each, _ in alarms if each > told])
        made.append(
            Event(
                identity=identity("time", label, machine, dated[told].night.recorded_at),
                kind="time",
                planner=planner,
                subject=label,
                outcome="worse" if worse else "better",
                began=dated[began].night.recorded_at,
                told=dated[told].night.recorded_at,
                before=dated[max(0, began - 1)].night.revision,
                after=dated[began].night.revision,
                machine=machine,
                change=reading.change,
                state="told" if not worse else "over" if over else "open",
                reason="as fast as before again" if over else "",
            )
        )
    return made


def _back(series: Sequence[Point], reading: Reading, later: Sequence[int]) -> bool:
    """Whether a later change took the speed back to where it was before."""
    if not later or reading.since is None:
        return False
    logs = [math.log(each.ratio) for each in series]
    before = statistics.median(logs[max(0, reading.since - WINDOW) : reading.since])
    now = statistics.median(logs[max(later[-1], len(logs) - LEVEL_NIGHTS) :])
    return now - before < RUN_CHANGE


def _ended(event: Event) -> Event:
    if event.state != "open":
        return event
    return replace(event, state="over", reason="a new segment began: its times compare with nothing before")
