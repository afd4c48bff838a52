"""The speed of each subject on one class of machine, its changes, and times and memory that are only noted."""

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.domain.value import Value, digest
from pipebench.track.judgement.events import AS_BEFORE, NEW_SEGMENT, Event, ended, identity
from pipebench.track.measurement.ratios import point_of
from pipebench.track.nights.night import Measured, Night, SubjectNight
from pipebench.track.rule.drift import Anchor
from pipebench.track.rule.noise import level
from pipebench.track.rule.onset import Onset
from pipebench.track.rule.rule import LEVEL_NIGHTS, RUN_CHANGE, WINDOW, RatioPoint, Reading, needs_rerun, readings
from pipebench.track.rule.statistics import date_of

FEWEST = 5
"""Earlier nights without which nothing is noted."""
OVER = 1 / 3
"""Of a slow change: what may be left of it when it is over."""
FAR = {"search_wall_s": 1.5, "search_peak_bytes": 1.1}


def information_notes(nights: Sequence[Night]) -> list[str]:
    """What lies over its median of the last nights of the class by more than noise does. nights: oldest first."""
    if not nights:
        return []
    found = []
    for measured in nights[-1].measured:
        before = [
            each.information
            for night in nights[-1 - WINDOW : -1]
            if (each := night.of(measured.subject)) is not None and each.fingerprint == measured.fingerprint
        ]
        for name, factor in FAR.items():
            known = [figures[name] for figures in before if name in figures]
            value = measured.information.get(name)
            if value is None or len(known) < FEWEST:
                continue
            usual = statistics.median(known)
            if value > factor * usual > 0:
                found.append(f"{measured.subject.label}: {_words(name, value)}, usually {_words(name, usual)}")
    return found


def _words(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{readable_bytes(round(value))} at its largest"
    return f"{readable_seconds(value)} of wall time"


NO_PAIR = "no pair was of use: the machine was too busy"


class Speed(Value, frozen=True, kw_only=True):
    """One subject, or one benchmark, tonight.

    ratio: CPU time over that of the calibration; known: earlier nights of its segment.
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
class DatedRatio:
    """A ratio with the night it belongs to."""

    night: Night
    point: RatioPoint


def segments_of(nights: Sequence[Night]) -> dict[tuple[str, str], list[DatedRatio]]:
    """The ratios by subject and fingerprint, calibration included. The label of a subject is its name."""
    found: dict[tuple[str, str], list[DatedRatio]] = {}
    for night in nights:
        for measured in night.timed:
            point = point_of(measured)
            if point is not None:
                found.setdefault((measured.label, segment_of(measured)), []).append(DatedRatio(night, point))
    return found


def speeds(nights: Sequence[Night]) -> list[Speed]:
    """Where each subject of the last night stands. nights: of one class of machine, oldest first."""
    if not nights:
        return []
    segments = segments_of(nights)
    return [speed_of(measured, segments) for measured in nights[-1].measured]


def time_events(nights: Sequence[Night], machine: str, acknowledged: Collection[str] = ()) -> list[Event]:
    """The changes of speed that the rule told on one class of machine. acknowledged: identities of events."""
    found: list[Event] = []
    latest = {each.label: segment_of(each) for night in nights for each in night.timed if each.paired}
    planners = {each.label: each.cause for night in nights for each in night.timed}
    for (label, segment), dated in segments_of(nights).items():
        made = _events(dated, label, planners[label], machine, acknowledged)
        if latest[label] != segment:
            made = [ended(event, NEW_SEGMENT) for event in made]
        found += made
    return found


def suspicion(nights: Sequence[Night]) -> Callable[[SubjectNight], bool]:
    """Whether tonight's ratio of a subject, not yet in the history, is to be measured again at once."""
    segments = segments_of(nights)  # once for all subjects: a history of years has tens of thousands

    def suspicious(measured: SubjectNight) -> bool:
        point = point_of(measured)
        if point is None:
            return False
        before = segments.get((measured.label, segment_of(measured)), [])
        return needs_rerun([*(each.point for each in before), point])

    return suspicious


def segment_of(measured: Measured) -> str:
    """What must be equal for ratios to be compared: the fingerprint, and the code that is the unit."""
    return digest([measured.fingerprint, measured.paired.calibration if measured.paired else ""])


def speed_of(measured: Measured, segments: dict[tuple[str, str], list[DatedRatio]]) -> Speed:
    """Where it stands tonight among the ratios of its segment."""
    label = measured.label
    point = point_of(measured)
    if measured.paired is None:
        return Speed(subject=label, state="not timed")
    discarded = measured.paired.discarded
    if point is None:
        return Speed(subject=label, state=NO_PAIR, imprecise=True, discarded=discarded)
    dated = segments[label, segment_of(measured)]
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
        steps=tuple(_first_night(series, reading, told) for told, reading in enumerate(found) if reading.alarm),
    )


def _first_night(series: Sequence[RatioPoint], reading: Reading, told: int) -> int:
    assert reading.since is not None
    if reading.onset is not None:
        return reading.since
    logs = [math.log(each.ratio) for each in series]
    return date_of(logs, reading.since, told, up=reading.change > 0)


def _events(
    dated: Sequence[DatedRatio], label: str, planner: str, machine: str, acknowledged: Collection[str]
) -> list[Event]:
    series = [each.point for each in dated]
    logs = [math.log(each.ratio) for each in series]
    alarms = [(told, reading) for told, reading in enumerate(readings(series)) if reading.alarm]
    made = []
    held_since = 0
    for told, reading in alarms:
        name = identity("time", label, machine, dated[told].night.recorded_at)
        began = _first_night(series, reading, told)
        first, last = (reading.onset.earliest, reading.onset.latest) if reading.onset else (began, began)
        drifts = reading.onset is not None and reading.onset.shape == "drift"
        worse = reading.change > 0
        over = worse and _is_back(logs, told, reading, [each for each, _ in alarms if each > told])
        made.append(
            Event(
                identity=name,
                kind="time",
                planner=planner,
                subject=label,
                outcome="worse" if worse else "better",
                began=dated[began].night.recorded_at,
                told=dated[told].night.recorded_at,
                before=dated[max(0, first - 1)].night.revision,
                after=dated[last].night.revision,
                machine=machine,
                change=reading.change,
                a_night=_a_night(reading.onset),
                over_best=_over_best(logs[held_since:told], reading.level),
                state="told" if not worse else "over" if over else "open",
                reason=AS_BEFORE if over else "",
            )
        )
        if name in acknowledged:
            held_since = told + 1 if drifts else began
    return made


def _a_night(onset: Onset | None) -> tuple[float, float] | None:
    """What a drift grows a night, at least and at most; None for a step."""
    if onset is None or onset.shape == "step":
        return None
    least, most = onset.slopes
    return math.expm1(least), math.expm1(most)


def _over_best(logs: Sequence[float], now: float) -> float | None:
    """A level over the anchor of the nights before it."""
    anchor = Anchor()
    for value in logs:
        anchor.add(value)
    return None if anchor.level is None else math.expm1(now - anchor.level)


def _is_back(logs: Sequence[float], told: int, reading: Reading, later: Sequence[int]) -> bool:
    """Whether the speed is again where it was before: by a later change, or, of a slow one, little by little."""
    assert reading.since is not None
    if reading.onset is not None:
        after = logs[max(told + 1, len(logs) - LEVEL_NIGHTS) :]
        return len(after) >= LEVEL_NIGHTS and level(after) < reading.before + OVER * math.log1p(reading.change)
    if not later:
        return False
    before = statistics.median(logs[max(0, reading.since - WINDOW) : reading.since])
    now = statistics.median(logs[max(later[-1], len(logs) - LEVEL_NIGHTS) :])
    return now - before < RUN_CHANGE
