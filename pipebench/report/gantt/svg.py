"""Timelines as SVG: one under the other on one scale of time, with a legend and the memory of devices."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipebench.documents.units import readable_seconds
from pipebench.report.chart.colours import MERGED, OUTLINE, PALE, TASKS, TRANSFERS
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    document,
    hint,
    line,
    name,
    round_ticks,
    text,
)
from pipebench.report.gantt.gantt import MANY, MEANING, UNITS, Bar, Gantt, GanttRow, without_short_bars
from pipebench.report.gantt.links import LANE, MOST_LINKS, WORDS, links_lane, links_of
from pipebench.report.gantt.memory import memory_panel

WIDTH, ROW, LINK, GAP, MARGIN = 900.0, 20.0, 12.0, 4.0, 16.0
HEAD = 58.0
"""Height of the picture's title and legend."""
COLOURS = TASKS | TRANSFERS | {MANY: MERGED}
SHORTEST = 0.8
"""Pixels below which bars are drawn together."""
LEAST_TRANSFER = 2.5
"""Pixels of a transfer, however short."""
MOST_HINTS = 1500
"""So many bars or fewer tell their times when pointed at."""


def gantt_svg(gantts: Sequence[Gantt], title: str, most_hints: int = MOST_HINTS) -> str:
    """The timelines as an SVG file, the longest as wide as the picture."""
    longest = max((each.until_ns for each in gantts), default=0) or 1
    shortest = round(longest / WIDTH * SHORTEST)
    thin = [without_short_bars(_with_lanes(each), shortest) for each in gantts]
    labels = [row.label for each, _ in thin for row in each.rows]
    left = MARGIN + LETTER * max([len("memory"), *map(len, labels)]) + 8
    hints = sum(len(row.bars) for each, _ in thin for row in each.rows) <= most_hints
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *legend(gantts, MARGIN)]
    top, drawn = HEAD, list[str]()
    for whole, (each, notes) in zip(gantts, thin, strict=True):
        one, top = _one(whole, each, notes, left, top, WIDTH / longest, hints)
        drawn += one
    unit_ns = gantts[0].unit_ns if gantts else None
    inside += [*time_axis(longest, unit_ns, left, top), *drawn]
    width = max(left + WIDTH + MARGIN + 14, MARGIN + LETTER * 1.15 * len(title))
    return document(width, top + 40, title, inside)


def _with_lanes(gantt: Gantt) -> Gantt:
    """What is drawn row by row: all, but of many links none."""
    if len(links_of(gantt)) <= MOST_LINKS:
        return gantt
    return replace(gantt, rows=tuple(row for row in gantt.rows if not row.link))


def _one(
    whole: Gantt, gantt: Gantt, notes: Sequence[str], left: float, top: float, scale: float, hints: bool
) -> tuple[list[str], float]:
    """One timeline with its title, and where it ends. gantt: the rows that are drawn one by one."""
    inside: list[str] = []
    for words in filter(None, (gantt.title, *notes)):
        inside.append(text(MARGIN, top + SIZE, words, bold=words == gantt.title))
        top += SIZE + 8
    for row in gantt.rows:
        height = LINK if row.link else ROW
        inside.append(text(left - 8, top + height / 2 + 4, row.label, anchor="end"))
        first = min((bar.stage for bar in row.bars), default=0)
        for bar in row.bars:
            said = words_of(bar, gantt) if hints else ""
            inside.append(_bar(bar, left, top, height, scale, said, paler=not row.link and bar.stage > first))
        inside += _labels(row, left, top, height, scale)
        top += height + GAP
    if len(links_of(whole)) > MOST_LINKS:
        inside += links_lane(whole, left, top, scale)
        top += WORDS + LANE + GAP
    if whole.memory:
        panel, top = memory_panel(whole, left, top + 6, WIDTH, scale)
        inside += panel
    return inside, top + 12


def _bar(bar: Bar, left: float, top: float, height: float, scale: float, said: str, paler: bool = False) -> str:
    """said: what it tells when pointed at. paler: of a device's later stages."""
    least = LEAST_TRANSFER if bar.kind in TRANSFERS else 0.5
    width = max((bar.end_ns - bar.start_ns) * scale, least)
    place = f'x="{left + bar.start_ns * scale:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.0f}"'
    if paler and bar.kind != MANY:
        place += ' fill-opacity="0.5"'
    outline = f'stroke="{OUTLINE}" stroke-width="{min(0.6, width / 4):.2f}"'
    box = f'<rect {place} fill="{COLOURS[bar.kind]}"{"" if bar.kind in TRANSFERS else f" {outline}"}'
    return f"{box}>{hint(said)}</rect>" if said else f"{box}/>"


def words_of(bar: Bar, gantt: Gantt) -> str:
    """What a bar is, in words without markup: F3 of stage 1, 1.20 s to 1.50 s."""
    times = f"{gantt.time(bar.start_ns)} to {gantt.time(bar.end_ns)}"
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


def legend(gantts: Sequence[Gantt], x: float) -> Iterator[str]:
    """What the colours of all kinds of bars mean, in the second line of a picture."""
    seen = {kind for each in gantts for kind in each.kinds}
    for kind in (kind for kind in MEANING if kind in seen):
        yield f'<rect x="{x:.0f}" y="36" width="14" height="12" fill="{COLOURS[kind]}" stroke="{OUTLINE}"/>'
        yield text(x + 20, 46, MEANING[kind])
        x += 20 + LETTER * len(MEANING[kind]) + 18


def time_axis(longest_ns: int, unit_ns: int | None, left: float, bottom: float) -> Iterator[str]:
    """From 0 to the longest, with a line through the whole picture at each tick. unit_ns: as in Gantt."""
    unit = UNITS if unit_ns else readable_seconds(longest_ns / 1e9).rpartition(" ")[2]
    factor = unit_ns or {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, longest_ns / factor, about=8):
        if tick * factor <= longest_ns:
            x = left + WIDTH * tick * factor / longest_ns
            yield line(x, HEAD, x, bottom, PALE, 0.6)
            yield text(x, bottom + 12, name(tick), anchor="middle")
    yield text(left + WIDTH / 2, bottom + 30, f"time ({unit})", anchor="middle")
