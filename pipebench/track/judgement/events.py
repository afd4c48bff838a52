"""Events: changes that the nights show, and how those of exact columns are told."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from pipebench.domain.value import Value, digest
from pipebench.track.nights.conditions import PROBLEM, differences
from pipebench.track.nights.exact import PLAN, Outcome, changed_columns, outcome
from pipebench.track.nights.history import RecordedNight
from pipebench.track.nights.night import Benchmark, Exact, Night, SubjectNight, TrackedSubject

State = Literal["open", "acknowledged", "over", "told"]


class ColumnChange(Value, frozen=True, kw_only=True):
    """One exact column before and after."""

    name: str
    before: Exact
    after: Exact


class Event(Value, frozen=True, kw_only=True):
    """identity: how it is acknowledged. kind `exact`: columns changed from one night to the next; `time`: the
    rule told a change of speed, by the factor 1 + change.

    began: the first night with the new values, dated by a fit for times; told: the night that showed it; both as
    recorded_at. before, after: the revisions between which it happened. plans: hashes of the plans, where both
    nights have one. a_night: what a drift grows a night, None for a step. over_best: the level that was told over
    the best that 30 nights held since the last acknowledged change, None where it is not known. state `open`:
    worse and neither acknowledged nor over; `told`: not worse. reason: of the acknowledgement, or why it is over.
    """

    identity: str
    kind: Literal["exact", "time"]
    planner: str
    subject: str
    outcome: Outcome
    began: str
    told: str
    before: str = ""
    after: str = ""
    machine: str = ""
    columns: tuple[ColumnChange, ...] = ()
    plans: tuple[str, str] | None = None
    change: float | None = None
    a_night: float | None = None
    over_best: float | None = None
    state: State
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether a check fails because of it."""
        return self.state == "open"


def identity(*parts: object) -> str:
    """Eight letters that stay the same from night to night."""
    return digest([str(part) for part in parts])[:8]


class Segment(Value, frozen=True, kw_only=True):
    """Where a new segment began: what changed around the planner, and the exact columns that moved with it."""

    subject: str
    began: str
    differences: tuple[str, ...]
    columns: tuple[ColumnChange, ...]


@dataclass(slots=True)
class _Sighting:
    night: Night
    measured: SubjectNight


@dataclass(slots=True)
class Changes:
    """Events and segments, in the order in which they came."""

    events: list[Event] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)


def exact_changes(nights: Sequence[RecordedNight]) -> Changes:
    """All changes of exact columns. A segment is what has one fingerprint; nights are compared inside it only."""
    found = Changes()
    last: dict[TrackedSubject, _Sighting] = {}
    segments: dict[tuple[TrackedSubject, str], _Sighting] = {}
    starts: list[tuple[Event, _Sighting]] = []
    for kept in nights:
        for measured in kept.night.measured:
            subject, seen = measured.subject, _Sighting(kept.night, measured)
            key = subject, digest(measured.fingerprint)
            if key in segments:
                if (event := _event(segments[key], seen, kept.machine)) is not None:
                    starts.append((event, segments[key]))
            elif subject in last:
                found.segments.append(_segment(last[subject], seen))
            segments[key] = last[subject] = seen
    found.events = [_with_state(event, before, last[before.measured.subject]) for event, before in starts]
    _add_benchmark_changes(nights, found)
    return found


def _event(before: _Sighting, after: _Sighting, machine: str) -> Event | None:
    old, new = before.measured, after.measured
    names = changed_columns(old.exact, new.exact, but=(*old.unsteady, *new.unsteady))
    if not names:
        return None
    label = new.subject.label
    plans = old.exact.get(PLAN), new.exact.get(PLAN)
    return Event(
        identity=identity("exact", label, after.night.recorded_at, names),
        kind="exact",
        planner=new.subject.planner,
        subject=label,
        outcome=outcome(old.exact, new.exact, names),
        began=after.night.recorded_at,
        told=after.night.recorded_at,
        before=before.night.revision,
        after=after.night.revision,
        machine=machine,
        columns=_columns(old.exact, new.exact, names),
        plans=(str(plans[0]), str(plans[1])) if all(plans) else None,
        state="open",
    )


def _with_state(event: Event, before: _Sighting, latest: _Sighting) -> Event:
    """A worsening is over when the latest night is not worse than the night before it, or has another problem."""
    if event.outcome != "worse":
        return replace(event, state="told")
    old, new = before.measured, latest.measured
    if old.fingerprint.get(PROBLEM) != new.fingerprint.get(PROBLEM):
        return replace(event, state="over", reason="the problem is another one since")
    names = [column.name for column in event.columns if old.exact.get(column.name) != new.exact.get(column.name)]
    if outcome(old.exact, new.exact, names) != "worse":
        return replace(event, state="over", reason=f"as good as before since {latest.night.date} or earlier")
    return event


def _segment(before: _Sighting, after: _Sighting) -> Segment:
    old, new = before.measured, after.measured
    return Segment(
        subject=new.subject.label,
        began=after.night.recorded_at,
        differences=tuple(differences(old.fingerprint, new.fingerprint)),
        columns=_columns(old.exact, new.exact, changed_columns(old.exact, new.exact)),
    )


def _columns(old: dict[str, Exact], new: dict[str, Exact], names: Sequence[str]) -> tuple[ColumnChange, ...]:
    return tuple(ColumnChange(name=name, before=old.get(name), after=new.get(name)) for name in names)


def _add_benchmark_changes(nights: Sequence[RecordedNight], found: Changes) -> None:
    """Counters of imported benchmarks; more work is worse. Over when the latest import is as good as before."""
    last: dict[str, tuple[Night, Benchmark]] = {}
    starts: list[tuple[Event, Benchmark]] = []
    for kept in nights:
        for benchmark in kept.night.benchmarks:
            if benchmark.name in last:
                night, old = last[benchmark.name]
                event = _benchmark_event(night, old, kept, benchmark)
                if event and old.fingerprint and old.fingerprint != benchmark.fingerprint:
                    found.segments.append(_benchmark_segment(old, benchmark, event))
                elif event:
                    starts.append((event, old))
            last[benchmark.name] = kept.night, benchmark
    found.events += [_benchmark_state(event, old, last[old.name][1]) for event, old in starts]


def _benchmark_segment(old: Benchmark, new: Benchmark, event: Event) -> Segment:
    """Other versions around it moved its counters."""
    return Segment(
        subject=new.name,
        began=event.began,
        differences=tuple(differences(old.fingerprint, new.fingerprint)),
        columns=event.columns,
    )


def _benchmark_event(before: Night, old: Benchmark, kept: RecordedNight, new: Benchmark) -> Event | None:
    shared = [name for name in changed_columns(old.counters, new.counters) if old.counters and new.counters]
    if not shared:
        return None
    worse = any(new.counters.get(name, 0) > old.counters.get(name, 0) for name in shared)
    return Event(
        identity=identity("benchmark", new.name, kept.night.recorded_at, shared),
        kind="exact",
        planner=new.name,
        subject=new.name,
        outcome="worse" if worse else "better",
        began=kept.night.recorded_at,
        told=kept.night.recorded_at,
        before=before.revision,
        after=kept.night.revision,
        machine=kept.machine,
        columns=_columns(dict(old.counters), dict(new.counters), shared),
        state="open" if worse else "told",
    )


def _benchmark_state(event: Event, old: Benchmark, latest: Benchmark) -> Event:
    grown = any(latest.counters.get(each.name, 0) > old.counters.get(each.name, 0) for each in event.columns)
    if event.state == "open" and not grown:
        return replace(event, state="over", reason="as good as before")
    return event
