"""One period of a schedule as SVG: forwards and backwards in two colours, transfers with round corners."""

from collections.abc import Iterator

from pipebench.domain.units import readable_seconds
from pipebench.report.chart.axis import name, round_ticks
from pipebench.report.chart.elements import INK, LETTER, PALE, SIZE, document, line, text
from pipebench.report.pattern import Block, Pattern

WIDTH, ROW, GAP, HEAD, MARGIN = 840.0, 24.0, 8.0, 66.0, 16.0
COLOURS = {"F": "#9ecae1", "B": "#fdbe85", "f": "#deebf7", "b": "#feedde"}
MEANING = (("F", "forward"), ("B", "backward"), ("f", "output sent"), ("b", "gradient sent back"))


def pattern_svg(pattern: Pattern, title: str) -> str:
    """The pattern as an SVG file; index shifts in brackets, as in MadPipe's figure 2."""
    left = MARGIN + LETTER * max((len(row.label) for row in pattern.rows), default=0) + 8
    bottom = HEAD + (ROW + GAP) * len(pattern.rows)
    scale = WIDTH / pattern.period_ns
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend(left)]
    inside += _time(pattern.period_ns, left, bottom)
    for position, row in enumerate(pattern.rows):
        top = HEAD + (ROW + GAP) * position
        inside.append(text(left - 8, top + ROW / 2 + 4, row.label, anchor="end"))
        for block in row.blocks:
            parts = [(left + a * scale, (b - a) * scale) for a, b in block.parts(pattern.period_ns)]
            for x, width in parts:
                inside.append(_box(x, top, width, ROW, block.kind, 7 if row.link else 0))
            inside += _label(block, *max(parts, key=lambda part: part[1]), top)
    width = max(left + WIDTH + MARGIN + 10, MARGIN + LETTER * 1.15 * len(title))
    return document(width, bottom + 44, title, inside)


def _legend(left: float) -> Iterator[str]:
    x = left
    for kind, meaning in MEANING:
        yield _box(x, HEAD - 22, 14, 12, kind, 3 if kind.islower() else 0)
        yield text(x + 20, HEAD - 12, meaning)
        x += 20 + LETTER * len(meaning) + 24


def _time(period_ns: int, left: float, bottom: float) -> Iterator[str]:
    """An axis in the unit of the period, which is marked at both ends."""
    words = readable_seconds(period_ns / 1e9)
    unit = words.rpartition(" ")[2]
    factor = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, period_ns / factor, about=8):
        if tick * factor <= period_ns:
            x = left + WIDTH * tick * factor / period_ns
            yield line(x, HEAD - 4, x, bottom, PALE)
            yield text(x, bottom + 14, name(tick), anchor="middle")
    for x in (left, left + WIDTH):
        yield line(x, HEAD - 4, x, bottom)
    yield text(left + WIDTH / 2, bottom + 32, f"time ({unit}), period {words}", anchor="middle")


def _label(block: Block, x: float, width: float, top: float) -> Iterator[str]:
    """In the wider part of a block that goes on at the beginning, and only where there is room."""
    words = next((w for w in (block.label, f"{block.kind}{block.stage}") if LETTER * len(w) <= width - 2), "")
    if words:
        yield text(x + width / 2, top + ROW / 2 + 4, words, anchor="middle")


def _box(x: float, y: float, width: float, height: float, kind: str, corner: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{corner}"'
    return f'<rect {place} fill="{COLOURS[kind]}" stroke="{INK}" stroke-width="0.8" class="{kind}"/>'
