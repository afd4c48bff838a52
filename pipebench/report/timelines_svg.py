"""Finite schedules as SVG, one below the other on one scale of time."""

from collections.abc import Iterator, Sequence

from pipebench.domain.trace import Trace
from pipebench.domain.units import readable_seconds
from pipebench.report.chart.axis import name, round_ticks
from pipebench.report.chart.elements import INK, LETTER, PALE, SIZE, document, line, text
from pipebench.report.pattern import named

WIDTH, ROW, GAP, ABOVE, BELOW, MARGIN = 1100.0, 18.0, 3.0, 34.0, 46.0, 16.0
COLOURS = {"F": "#9ecae1", "B": "#fdbe85", "I": "#fdbe85", "W": "#c7e9c0", "R": "#bcbddc"}
MEANING = (("F", "forward"), ("B", "backward"), ("W", "weight gradient"), ("R", "all-reduce"))
SMALL = 9


def timelines_svg(traces: Sequence[tuple[str, Trace]], title: str) -> str:
    """All of them, so that a shorter one ends further left. A number is a micro-batch; each box has a tooltip."""
    labels = [named(lane) for _, trace in traces for lane in trace.lanes]
    left = MARGIN + LETTER * max(map(len, labels), default=0) + 8
    length_ns = max((trace.total_ns for _, trace in traces), default=1) or 1
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend(traces, left)]
    top = MARGIN + 2.2 * SIZE + 22
    for words, trace in traces:
        inside += _drawn(words, trace, length_ns, left, top)
        top += ABOVE + (ROW + GAP) * len(trace.lanes) + BELOW
    return document(left + WIDTH + MARGIN + 10, top, title, inside)


def _legend(traces: Sequence[tuple[str, Trace]], left: float) -> Iterator[str]:
    kinds = {kind for _, trace in traces for kind in trace.kinds}
    x = left
    for kind, meaning in MEANING:
        if kind in kinds:
            yield _box(x, MARGIN + SIZE + 12, 14, 12, kind, meaning)
            yield text(x + 20, MARGIN + SIZE + 22, meaning)
            x += 20 + LETTER * len(meaning) + 24


def _drawn(words: str, trace: Trace, length_ns: int, left: float, top: float) -> Iterator[str]:
    scale = WIDTH / length_ns
    first, bottom = top + ABOVE, top + ABOVE + (ROW + GAP) * len(trace.lanes)
    yield text(MARGIN, top + SIZE + 4, f"{words}: {readable_seconds(trace.total_ns / 1e9)}", bold=True)
    yield from _time(length_ns, left, first, bottom)
    for row, lane in enumerate(trace.lanes):
        yield text(left - 8, first + (ROW + GAP) * row + ROW / 2 + 4, named(lane), anchor="end")
    for row, stage, batch, kind, start, end in zip(
        trace.lane, trace.stage, trace.micro_batch, trace.kinds, trace.start_ns, trace.end_ns, strict=True
    ):
        x, y, width = left + start * scale, first + (ROW + GAP) * row, (end - start) * scale
        number = "" if kind == "R" else str(batch)
        yield _box(x, y, width, ROW, kind, f"{kind}{number} of stage {stage}")
        if number and 0.62 * SMALL * len(number) <= width - 1:
            yield (
                f'<text x="{x + width / 2:.1f}" y="{y + ROW / 2 + 3:.1f}" text-anchor="middle" '
                f'font-size="{SMALL}" fill="{INK}">{number}</text>'
            )
    end = left + trace.total_ns * scale
    yield line(end, first - 4, end, bottom, INK, 1.6)


def _time(length_ns: int, left: float, first: float, bottom: float) -> Iterator[str]:
    unit = readable_seconds(length_ns / 1e9).rpartition(" ")[2]
    factor = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, length_ns / factor, about=10):
        if tick * factor <= length_ns:
            x = left + WIDTH * tick * factor / length_ns
            yield line(x, first - 4, x, bottom, PALE)
            yield text(x, bottom + 14, name(tick), anchor="middle")
    yield text(left + WIDTH / 2, bottom + 30, f"time ({unit})", anchor="middle")


def _box(x: float, y: float, width: float, height: float, kind: str, tip: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.4):.1f}" height="{height:.1f}"'
    style = f'fill="{COLOURS[kind]}" stroke="{INK}" stroke-width="0.4" class="{kind}"'
    return f"<rect {place} {style}><title>{tip}</title></rect>"
