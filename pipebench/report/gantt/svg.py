"""Timelines as SVG: one under the other on one scale of time, with a legend and the memory of devices."""

from collections.abc import Iterator, Sequence

from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.domain.trace import MemoryTimeline
from pipebench.report.chart.colours import INK, MERGED, OUTLINE, PALE, TASKS, TRANSFERS
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    colour_of,
    document,
    hint,
    line,
    name,
    round_ticks,
    text,
)
from pipebench.report.gantt.gantt import MANY, MEANING, Bar, Gantt, GanttRow, without_short_bars

MEMORY_HEIGHT, MEMORY_HEAD = 96.0, 18.0
MOST_DEVICES = 8
MOST_STEPS = 900
"""Of one line; more are merged, each to the largest of its neighbours, so that no peak is lost."""


def memory_panel(gantt: Gantt, left: float, top: float, width: float, scale: float) -> Iterator[str]:
    """Lines of the fullest devices, their peaks in words; dashed: what a device has, where it is near."""
    fullest = sorted(gantt.memory, key=lambda each: (-each.peak_bytes, each.device))[:MOST_DEVICES]
    highest = max(each.peak_bytes for each in fullest) or 1
    limit = min(gantt.capacity, default=0)
    ceiling = max(highest, limit if limit <= 2 * highest else 0)
    low, high = top + MEMORY_HEIGHT, top + MEMORY_HEAD
    words = ", ".join(f"gpu{each.device} {readable_bytes(each.peak_bytes)}" for each in fullest)
    more = len(gantt.memory) - len(fullest)
    yield text(left, top + 11, f"peak memory: {words}{f', and {more} devices with less' if more else ''}")
    yield text(left - 8, low, "memory", anchor="end")
    yield line(left, low, left + width, low, PALE)
    if limit and limit <= ceiling:
        y = low - (low - high) * limit / ceiling
        yield line(left, y, left + width, y, INK, 0.5)
        yield text(left - 8, y + 4, readable_bytes(limit), anchor="end")
    for number, each in enumerate(fullest):
        points = _steps(each, gantt.until_ns, left, low, scale, (low - high) / ceiling)
        yield f'<polyline points="{points}" fill="none" stroke="{colour_of(number)}" stroke-width="1.3"/>'


def _steps(of: MemoryTimeline, until_ns: int, left: float, low: float, scale: float, pixel: float) -> str:
    """Corners of the line, from the start to until_ns."""
    every = max(1, len(of.bytes) // MOST_STEPS)
    points: list[str] = []
    last = low
    for first in range(0, len(of.bytes), every):
        if of.time_ns[first] > until_ns:
            break
        x = left + of.time_ns[first] * scale
        height = low - max(of.bytes[first : first + every]) * pixel
        points += [f"{x:.1f},{last:.1f}", f"{x:.1f},{height:.1f}"]
        last = height
    return " ".join([*points, f"{left + until_ns * scale:.1f},{last:.1f}"])


WIDTH, ROW, LINK, GAP, MARGIN = 900.0, 20.0, 12.0, 4.0, 16.0
HEAD = 58.0
"""Height of the picture's title and legend."""
COLOURS = TASKS | TRANSFERS | {MANY: MERGED}
SHORTEST = 0.8
"""Pixels below which bars are drawn together."""
MOST_HINTS = 1500
"""So many bars or fewer tell their times when pointed at."""


def gantt_svg(gantts: Sequence[Gantt], title: str, most_hints: int = MOST_HINTS) -> str:
    """The timelines as an SVG file, the longest as wide as the picture."""
    longest = max((each.until_ns for each in gantts), default=0) or 1
    thin = [without_short_bars(each, round(longest / WIDTH * SHORTEST)) for each in gantts]
    labels = [row.label for each, _ in thin for row in each.rows]
    left = MARGIN + LETTER * max([len("memory"), *map(len, labels)]) + 8
    hints = sum(len(row.bars) for each, _ in thin for row in each.rows) <= most_hints
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend([each for each, _ in thin], MARGIN)]
    top, drawn = HEAD, list[str]()
    for each, notes in thin:
        one, top = _one(each, notes, left, top, WIDTH / longest, hints)
        drawn += one
    inside += [*_time(longest, left, top), *drawn]
    width = max(left + WIDTH + MARGIN + 14, MARGIN + LETTER * 1.15 * len(title))
    return document(width, top + 40, title, inside)


def _one(
    gantt: Gantt, notes: Sequence[str], left: float, top: float, scale: float, hints: bool
) -> tuple[list[str], float]:
    """One timeline with its title, and where it ends."""
    inside: list[str] = []
    for words in filter(None, (gantt.title, *notes)):
        inside.append(text(MARGIN, top + SIZE, words, bold=words == gantt.title))
        top += SIZE + 8
    for row in gantt.rows:
        height = LINK if row.link else ROW
        inside.append(text(left - 8, top + height / 2 + 4, row.label, anchor="end"))
        first = min((bar.stage for bar in row.bars), default=0)
        inside += [
            _bar(bar, left, top, height, scale, hints, paler=not row.link and bar.stage > first)
            for bar in row.bars
        ]
        inside += _labels(row, left, top, height, scale)
        top += height + GAP
    if gantt.memory:
        inside += memory_panel(gantt, left, top + 6, WIDTH, scale)
        top += MEMORY_HEIGHT + 6
    return inside, top + 12


def _bar(bar: Bar, left: float, top: float, height: float, scale: float, hints: bool, paler: bool = False) -> str:
    """paler: of a device's later stages."""
    width = max((bar.end_ns - bar.start_ns) * scale, 0.5)
    place = f'x="{left + bar.start_ns * scale:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.0f}"'
    if paler and bar.kind != MANY:
        place += ' fill-opacity="0.5"'
    box = f'<rect {place} fill="{COLOURS[bar.kind]}" stroke="{OUTLINE}" stroke-width="{min(0.6, width / 4):.2f}"'
    return f"{box}>{hint(words_of(bar))}</rect>" if hints else f"{box}/>"


def words_of(bar: Bar) -> str:
    """What a bar is, in words without markup: F3 of stage 1, 1.20 s to 1.50 s."""
    times = f"{readable_seconds(bar.start_ns / 1e9)} to {readable_seconds(bar.end_ns / 1e9)}"
    if bar.kind == MANY:
        return f"{bar.count} tasks, {times}"
    return f"{bar.label} of stage {bar.stage} ({MEANING[bar.kind]}), {times}"


def _labels(row: GanttRow, left: float, top: float, height: float, scale: float) -> Iterator[str]:
    for bar in row.bars:
        width = (bar.end_ns - bar.start_ns) * scale
        words = next((w for w in (bar.label, bar.kind) if LETTER * len(w) <= width - 2), "")
        if words and not row.link and bar.kind != MANY:
            middle = left + (bar.start_ns + bar.end_ns) / 2 * scale
            yield text(middle, top + height / 2 + 4, words, anchor="middle")


def _legend(gantts: Sequence[Gantt], x: float) -> Iterator[str]:
    seen = {kind for each in gantts for kind in each.kinds}
    for kind in (kind for kind in MEANING if kind in seen):
        yield f'<rect x="{x:.0f}" y="36" width="14" height="12" fill="{COLOURS[kind]}" stroke="{OUTLINE}"/>'
        yield text(x + 20, 46, MEANING[kind])
        x += 20 + LETTER * len(MEANING[kind]) + 18


def _time(longest_ns: int, left: float, bottom: float) -> Iterator[str]:
    unit = readable_seconds(longest_ns / 1e9).rpartition(" ")[2]
    factor = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, longest_ns / factor, about=8):
        if tick * factor <= longest_ns:
            x = left + WIDTH * tick * factor / longest_ns
            yield line(x, HEAD, x, bottom, PALE, 0.6)
            yield text(x, bottom + 12, name(tick), anchor="middle")
    yield text(left + WIDTH / 2, bottom + 30, f"time ({unit})", anchor="middle")
