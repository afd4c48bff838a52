"""Events: changes that the nights show, and how those of exact columns are told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec.structs import replace

from pipebench.domain.value import Value, digest
from pipebench.track.nights.conditions import PROBLEM, differences
from pipebench.track.nights.exact import PLAN, Outcome, changed_columns, outcome
from pipebench.track.nights.history import StoredNight
from pipebench.track.nights.night import Benchmark, Exact, Measured, Night, SubjectNight, TrackedSubject

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
    nights have one. a_night: what a drift grows a night, at least and at most, None for a step. over_best: the
    level that was told over the best that 30 nights held since the last acknowledged change, None where it is not
    known. failure: why there is no plan any more, where no column says it. state `open`: worse and neither
    acknowledged nor over; `told`: not worse. reason: of the acknowledgement, or why it is over.
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
    a_night: tuple[float, float] | None = None
    over_best: float | None = None
    failure: str = ""
    state: State
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether a check fails because of it."""
        return self.state == "open"

    @property
    def state_words(self) -> str:
        """The state, with its reason where there is one."""
        return f"{self.state}: {self.reason}" if self.reason else self.state


def identity(*parts: object) -> str:
    """Eight letters that stay the same from night to night."""
    return digest([str(part) for part in parts])[:8]


NEW_SEGMENT = "a new segment began: its times compare with nothing before"
AS_BEFORE = "as fast as before again"


def ended(event: Event, reason: str) -> Event:
    """The event as it stands when it is over; one that was not open stays as it is."""
    return replace(event, state="over", reason=reason) if event.fails else event


class Segment(Value, frozen=True, kw_only=True):
    """Where a new segment began: what changed around the planner, and the exact columns that moved with it."""

    subject: str
    began: str
    differences: tuple[str, ...]
    columns: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that was measured, and its night."""

    kept: StoredNight
    measured: Measured

    @property
    def night(self) -> Night:
        """When it was measured."""
        return self.kept.night


def event_between(before: Sighting, after: Sighting, name: str, **fields: Any) -> Event:
    """An event that the later night shows. name: its identity; fields: what it says; open where that is worse."""
    return Event(
        identity=name,
        planner=after.measured.cause,
        subject=after.measured.label,
        began=after.night.recorded_at,
        told=after.night.recorded_at,
        before=before.night.revision,
        after=after.night.revision,
        machine=after.kept.machine.name,
        state="open" if fields["outcome"] == "worse" else "told",
        **fields,
    )


@dataclass(slots=True)
class Changes:
    """Events and segments, in the order in which they came."""

    events: list[Event] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)


def exact_changes(nights: Sequence[StoredNight]) -> Changes:
    """All changes of exact columns. A segment is what has one fingerprint; nights are compared inside it only.

    A benchmark is compared with its last import, and begins a segment where other versions moved its counters.
    """
    found = Changes()
    last: dict[TrackedSubject | str, Sighting] = {}
    segments: dict[tuple[TrackedSubject | str, str], Sighting] = {}
    starts: list[tuple[Event, Sighting]] = []
    for kept in nights:
        for measured in kept.night.timed:
            seen, before = Sighting(kept, measured), last.get(measured.subject)
            key = measured.subject, digest(measured.fingerprint)
            same = segments.get(key)
            if isinstance(measured, Benchmark):
                same = before if before and before.measured.fingerprint in ({}, measured.fingerprint) else None
            if same is not None:
                if (event := _event(same, seen)) is not None:
                    starts.append((event, same))
            elif before is not None and (moved := _segment(before, seen)) is not None:
                found.segments.append(moved)
            segments[key] = last[measured.subject] = seen
    found.events = [_with_state(event, before, last[before.measured.subject]) for event, before in starts]
    return found


def _event(before: Sighting, after: Sighting) -> Event | None:
    old, new = before.measured, after.measured
    names = _changed(old, new, but=(*old.unsteady, *new.unsteady))
    if not names:
        return None
    sort, plans = "benchmark", None
    if not isinstance(new, Benchmark):
        sort, plans = "exact", (old.exact.get(PLAN), new.exact.get(PLAN))
    return event_between(
        before,
        after,
        identity(sort, new.label, after.night.recorded_at, names),
        kind="exact",
        outcome=_outcome(old, new, names),
        columns=_columns(old.exact, new.exact, names),
        plans=(str(plans[0]), str(plans[1])) if plans and all(plans) else None,
        failure=_failure(new) if "status" in names else "",
    )


def _failure(new: Measured) -> str:
    """The reason of a night that is no column."""
    return (new.reason or "") if isinstance(new, SubjectNight) else ""


def _changed(old: Measured, new: Measured, but: Iterable[str] = ()) -> list[str]:
    """The columns that differ; a benchmark without any counter has lost none."""
    if isinstance(new, Benchmark) and not (old.exact and new.exact):
        return []
    return changed_columns(old.exact, new.exact, but)


def _outcome(old: Measured, new: Measured, names: Sequence[str]) -> Outcome:
    """Of columns that differ. All counters of a benchmark are work."""
    if isinstance(old, Benchmark) and isinstance(new, Benchmark):
        grown = any(new.counters.get(name, 0) > old.counters.get(name, 0) for name in names)
        return "worse" if grown else "better"
    return outcome(old.exact, new.exact, names)


def _with_state(event: Event, before: Sighting, latest: Sighting) -> Event:
    """A worsening is over when the latest night is not worse than the night before it, or has another problem."""
    old, new = before.measured, latest.measured
    if old.fingerprint.get(PROBLEM) != new.fingerprint.get(PROBLEM):
        return ended(event, "the problem is another one since")
    names = [column.name for column in event.columns if old.exact.get(column.name) != new.exact.get(column.name)]
    if _outcome(old, new, names) != "worse":
        return ended(event, f"as good as before since {latest.night.date} or earlier")
    return event


def _segment(before: Sighting, after: Sighting) -> Segment | None:
    """What began, None where that moved nothing of a benchmark."""
    old, new = before.measured, after.measured
    names = _changed(old, new)
    if isinstance(new, Benchmark) and not names:
        return None
    return Segment(
        subject=new.label,
        began=after.night.recorded_at,
        differences=tuple(differences(old.fingerprint, new.fingerprint)),
        columns=_columns(old.exact, new.exact, names),
    )


def _columns(old: Mapping[str, Exact], new: Mapping[str, Exact], names: Sequence[str]) -> tuple[ColumnChange, ...]:
    return tuple(ColumnChange(name=name, before=old.get(name), after=new.get(name)) for name in names)
