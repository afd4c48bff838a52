"""Every series of a history, whole: what a page draws, with the changes that were told and their revisions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pipebench.track.judgement.benchmarks import with_ratios
from pipebench.track.judgement.events import Event
from pipebench.track.judgement.speeds import segment_of
from pipebench.track.measurement.ratios import ratio_of
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.exact import BYTES, VALUES, WORK
from pipebench.track.nights.history import History, StoredNight
from pipebench.track.nights.night import Benchmark, Measured

Group = Literal["search times", "benchmarks", "counters of benchmarks", "plans and work"]
Unit = Literal["ratio", "seconds", "count", "ns", "bytes"]
PLAN_COLUMNS = (*VALUES, *BYTES[:1])


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One night. moment: as recorded, UTC, ISO 8601."""

    moment: str
    revision: str
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """One value night after night, oldest first.

    machine: class of machine; empty where values do not depend on it. changes: events with the position of the
    first night that has the new value. segments: positions at which other versions, or another unit, begin.
    """

    group: Group
    subject: str
    column: str
    unit: Unit
    machine: str
    points: tuple[SeriesPoint, ...]
    changes: tuple[tuple[int, Event], ...] = ()
    segments: tuple[int, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether every night had the same value."""
        return len({point.value for point in self.points}) == 1


def history_series(history: History, events: Sequence[Event]) -> list[Series]:
    """Times by class of machine, and what is exact over all machines. events: as judged."""
    found: list[Series] = []
    for machine in history.machines:
        found += _times([kept for kept in history.nights if kept.machine == machine], machine, events)
    return [*found, *_exact(history.nights, events)]


def _times(nights: Sequence[StoredNight], machine: MachineClass, events: Sequence[Event]) -> Iterator[Series]:
    """Ratios, and the seconds of benchmarks that have none."""
    rows: dict[tuple[Group, str, Unit], list[tuple[SeriesPoint, str]]] = {}
    known = with_ratios([kept.night for kept in nights])
    for kept in nights:
        for each in kept.night.timed:
            ratio = ratio_of(each.paired)
            group: Group = "benchmarks" if isinstance(each, Benchmark) else "search times"
            unit: Unit = "ratio" if ratio is not None else "seconds"
            if ratio is not None:
                value = ratio
            elif isinstance(each, Benchmark) and each.name not in known:
                value = each.seconds["median"]
            else:
                continue
            rows.setdefault((group, each.label, unit), []).append((_point(kept, value), segment_of(each)))
    told = [event for event in events if event.kind == "time" and event.machine == machine.name]
    for (group, label, unit), found in rows.items():
        points = tuple(point for point, _ in found)
        mine = [event for event in told if event.subject == label]
        starts = tuple(i for i in range(1, len(found)) if found[i][1] != found[i - 1][1])
        yield Series(group, label, "", unit, machine.words, points, _placed(points, mine), starts)


def _exact(nights: Sequence[StoredNight], events: Sequence[Event]) -> Iterator[Series]:
    rows: dict[tuple[Group, str, str], list[SeriesPoint]] = {}
    for kept in nights:
        for each in kept.night.timed:
            for group, column, value in _columns(each):
                rows.setdefault((group, each.label, column), []).append(_point(kept, value))
    told = [event for event in events if event.kind == "exact"]
    for (group, label, column), found in rows.items():
        mine = [
            event
            for event in told
            if event.subject == label and column in (change.name for change in event.columns)
        ]
        points = tuple(found)
        yield Series(group, label, column, _unit(column), "", points, _placed(points, mine))


def _columns(each: Measured) -> Iterator[tuple[Group, str, float]]:
    if isinstance(each, Benchmark):
        for name, count in each.counters.items():
            yield "counters of benchmarks", name, count
        return
    for name, value in each.exact.items():
        if (name in PLAN_COLUMNS or name.startswith(WORK)) and isinstance(value, int | float):
            yield "plans and work", name, value


def _unit(column: str) -> Unit:
    if column in VALUES:
        return "ns"
    return "bytes" if column in BYTES else "count"


def _point(kept: StoredNight, value: float) -> SeriesPoint:
    return SeriesPoint(kept.night.recorded_at, kept.night.revision, value)


def _placed(points: Sequence[SeriesPoint], events: Sequence[Event]) -> tuple[tuple[int, Event], ...]:
    """Each event at the first of the nights that carry its moment."""
    places = {point.moment: position for position, point in reversed(list(enumerate(points)))}
    return tuple((places[event.began], event) for event in events if event.began in places)
