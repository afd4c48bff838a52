"""A trace as rows of bars, one row a device or link; bars too short to be seen are joined."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pipebench.documents.units import readable_seconds
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench.report.gantt.arrows import Arrow, RowKey, arrows_of, link_label

MEANING = {
    "F": "forward",
    "B": "backward",
    "I": "input gradient",
    "W": "weight gradient",
    "R": "all-reduce",
    "f": "output sent",
    "b": "gradient sent back",
}
"""Kinds of bars: those of tasks, and in small letters those of transfers."""
MANY = "*"
"""The kind of a bar that stands for several, too short to be told apart."""


UNITS = "units"
"""What times are in that have no real unit."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A task of a stage, or a transfer from it (f) or from its gradient's side (b). count: tasks it stands for."""

    kind: str
    stage: int
    micro_batch: int
    start_ns: int
    end_ns: int
    count: int = 1

    @property
    def label(self) -> str:
        """F3: forward of micro-batch 3; all-reduces have no number."""
        return self.kind if self.kind in ("R", MANY) else f"{self.kind}{self.micro_batch}"


@dataclass(frozen=True, slots=True)
class GanttRow:
    """Bars by start. link: of transfers. devices: of a row that is no link."""

    label: str
    bars: tuple[Bar, ...]
    link: bool = False
    devices: tuple[int, ...] = ()

    @property
    def key(self) -> RowKey:
        """What arrows call it."""
        return self.label if self.link else self.devices


@dataclass(frozen=True, slots=True)
class Gantt:
    """One trace. until_ns: where the picture ends. capacity: bytes of each device whose memory is known.

    unit_ns: of a pipeline whose times have no real unit, what stands for one of its units.
    """

    title: str
    rows: tuple[GanttRow, ...]
    until_ns: int
    memory: tuple[MemoryTimeline, ...] = ()
    capacity: tuple[int, ...] = ()
    unit_ns: int | None = None
    arrows: tuple[Arrow, ...] = ()

    def time(self, ns: float) -> str:
        """An instant or a length, with its unit."""
        return readable_seconds(ns / 1e9) if self.unit_ns is None else f"{ns / self.unit_ns:g} {UNITS}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of bars that occur, in the order of MEANING."""
        seen = {bar.kind for row in self.rows for bar in row.bars}
        return tuple(kind for kind in MEANING if kind in seen)


def gantt(
    trace: Trace, title: str = "", until_ns: int | None = None, capacity: Iterable[int] = (), links: bool = True
) -> Gantt:
    """The rows of a trace. capacity: bytes of each device by id, for those of the trace's memory."""
    limits = tuple(capacity)
    return Gantt(
        title=title,
        rows=(*_lanes(trace), *(_links(trace) if links else ())),
        until_ns=trace.total_ns if until_ns is None else until_ns,
        memory=trace.memory,
        capacity=tuple(limits[each.device] for each in trace.memory) if limits else (),
        arrows=tuple(arrows_of(trace)),
    )


def device_label(devices: tuple[int, ...]) -> str:
    """gpu3, or gpu0-3 for devices that work as one."""
    return f"gpu{devices[0]}" if len(devices) == 1 else f"gpu{devices[0]}-{devices[-1]}"


def _lanes(trace: Trace) -> Iterable[GanttRow]:
    bars: list[list[Bar]] = [[] for _ in trace.lanes]
    columns = trace.lane, trace.kinds, trace.stage, trace.micro_batch, trace.start_ns, trace.end_ns
    for lane, *of in zip(*columns, strict=True):
        bars[lane].append(Bar(*of))
    for devices, found in zip(trace.lanes, bars, strict=True):
        yield GanttRow(device_label(devices), _by_start(found), devices=devices)


def _links(trace: Trace) -> Iterable[GanttRow]:
    """A row for each pair of stages and direction; 0>1 carries outputs of stage 0, 1>0 gradients back to it.

    Transfers that take no time are left out.
    """
    bars: dict[tuple[int, int], list[Bar]] = {}
    columns = trace.source, trace.target, trace.transfer_kinds, trace.message
    times = trace.transfer_start_ns, trace.transfer_end_ns
    for source, target, kind, message, start, end in zip(*columns, *times, strict=True):
        if end > start:
            bars.setdefault((source, target), []).append(Bar(kind.lower(), source, message, start, end))
    for (source, target), found in sorted(bars.items()):
        yield GanttRow(link_label(source, target), _by_start(found), link=True)


def _by_start(bars: list[Bar]) -> tuple[Bar, ...]:
    return tuple(sorted(bars, key=lambda bar: (bar.start_ns, bar.end_ns)))


MOST_ROWS = 64
"""Rows of devices in one picture; of links there are as many at most."""


def without_short_bars(whole: Gantt, shortest_ns: int) -> tuple[Gantt, tuple[str, ...]]:
    """The picture without bars shorter than shortest_ns next to one another, and what was left out, in words."""
    rows = [*_first(whole.rows, link=False), *_first(whole.rows, link=True)]
    fewer = tuple(replace(row, bars=tuple(_merge_short(row.bars, shortest_ns, whole.until_ns))) for row in rows)
    notes = []
    if len(rows) < len(whole.rows):
        notes.append(f"{len(whole.rows) - len(rows)} of {len(whole.rows)} rows are left out")
    joined = sum(bar.count for row in fewer for bar in row.bars if bar.kind == MANY)
    if joined:
        notes.append(f"{joined:,} tasks too short to be told apart are drawn together")
    return replace(whole, rows=fewer), tuple(notes)


def _first(rows: Iterable[GanttRow], *, link: bool) -> list[GanttRow]:
    return [row for row in rows if row.link == link][:MOST_ROWS]


def _merge_short(bars: Iterable[Bar], shortest_ns: int, until_ns: int) -> Iterator[Bar]:
    """Bars in order; a run of short ones with no gap as long as shortest_ns between them becomes one."""
    held: Bar | None = None
    for whole in bars:
        if whole.start_ns >= until_ns:
            break
        bar = replace(whole, end_ns=min(whole.end_ns, until_ns))
        short = bar.end_ns - bar.start_ns < shortest_ns
        if held is not None and short and bar.start_ns - held.end_ns < shortest_ns:
            end = max(held.end_ns, bar.end_ns)
            held = replace(held, kind=MANY, end_ns=end, count=held.count + 1)
        else:
            if held is not None:
                yield held
            held = bar if short else None
            if not short:
                yield bar
    if held is not None:
        yield held
