"""Predicted against measured seconds, both on logarithmic axes: a marker for each run, a series for each group."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.documents.units import quantity, readable_seconds
from pipebench.report.chart.colours import CURVES, INK, PALE, STROKE
from pipebench.report.chart.elements import (
    DASHES,
    LETTER,
    SIZE,
    Axis,
    document,
    hint,
    line,
    marker,
    shortened,
    text,
)

LEFT, GAP, HEAD, SIDE, BELOW, ENTRY, WORDS = 64.0, 28.0, 40.0, 460.0, 52.0, 18.0, 352.0
"""Pixels: left and right of the plot, above it, its sides, below it, a line of the legend, its words."""
MARKER_SCALE = 1.15
MOST_SERIES = 2 * len(CURVES)
"""Series whose markers all differ."""
BAND = 0.1
"""The dashed lines stand so far above and below the diagonal."""
MOST_DECADES = 2
"""So many powers of ten have ticks between them."""


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """A run. series: of its group. measured_s, predicted_s: above 0. low_s, high_s: its interval, or None."""

    name: str
    series: int
    measured_s: float
    predicted_s: float
    low_s: float | None = None
    high_s: float | None = None


def scatter_svg(points: Sequence[ScatterPoint], series: Sequence[str], title: str) -> str:
    """The chart as an SVG file. series: names by number. points: at least one."""
    floor = HEAD + SIDE
    values = [value for point in points for value in (point.measured_s, point.predicted_s)]
    across, up = _axis(values, LEFT, LEFT + SIDE), _axis(values, floor, HEAD)
    inside = [text(LETTER, SIZE + 4, title, bold=True), *_axes(across, up), *_diagonals(across, up)]
    inside += [element for point in points for element in _point(point, across, up)]
    for number, words in enumerate(series):
        x, y = LEFT + SIDE + GAP, HEAD + ENTRY * number + 8
        inside.append(marker(x, y - 4, number, _hollow(number), MARKER_SCALE))
        inside.append(text(x + 12, y, shortened(words, WORDS - 12)))
    described = f"{quantity(len(points), 'run')}; points below the diagonal are predicted too fast."
    height = max(floor + BELOW, HEAD + ENTRY * (len(series) + 1))
    return document(LEFT + SIDE + GAP + WORDS, height, title, inside, described)


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Of the powers of ten of seconds, the same for both axes: to the next 1, 2 or 5 around all values."""
    low, high = math.log10(min(values)), math.log10(max(values))
    powers = range(math.floor(low) - 1, math.ceil(high) + 2)
    steps = [power + math.log10(digit) for power in powers for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high and step > first)
    named = steps if last - first <= MOST_DECADES else [float(power) for power in powers]
    return Axis(first, last, start, end, tuple(step for step in named if first <= step <= last))


def _axes(across: Axis, up: Axis) -> Iterator[str]:
    for tick in up.ticks:
        yield line(across.start, up.at(tick), across.end, up.at(tick), PALE)
        yield text(across.start - 6, up.at(tick) + 4, _words(tick), anchor="end")
    for tick in across.ticks:
        yield line(across.at(tick), up.start, across.at(tick), up.end, PALE)
        yield text(across.at(tick), up.start + 17, _words(tick), anchor="middle")
    yield line(across.start, up.start, across.end, up.start)
    yield line(across.start, up.start, across.start, up.end)
    yield text((across.start + across.end) / 2, up.start + 36, "measured", anchor="middle")
    yield text(SIZE + 2, (up.start + up.end) / 2, "predicted", anchor="middle", turned=True)


def _words(power: float) -> str:
    """10 ms, 1 s: as short as can be."""
    unit, factor = next((each for each in (("s", 0), ("ms", -3)) if power >= each[1] - 1e-9), ("us", -6))
    return f"{10 ** (power - factor):,.3g} {unit}"


def _diagonals(across: Axis, up: Axis) -> Iterator[str]:
    """Where predicted is measured, and 10 % above and below, cut off at the edges of the plot."""
    for factor, dash in ((1.0, ""), (1 + BAND, DASHES), (1 - BAND, DASHES)):
        shift = math.log10(factor)
        low, high = max(across.low, across.low - shift), min(across.high, across.high - shift)
        ends = (
            f'x1="{across.at(low):.1f}" y1="{up.at(low + shift):.1f}" '
            f'x2="{across.at(high):.1f}" y2="{up.at(high + shift):.1f}"'
        )
        style = f'stroke="{STROKE if dash else INK}" stroke-width="1.2"' + (
            f' stroke-dasharray="{dash}"' * bool(dash)
        )
        yield f'<line {ends} {style} class="diagonal"/>'


def _point(point: ScatterPoint, across: Axis, up: Axis) -> Iterator[str]:
    x, y = across.at(math.log10(point.measured_s)), up.at(math.log10(point.predicted_s))
    error = point.predicted_s / point.measured_s - 1
    words = (
        f"{point.name}: measured {readable_seconds(point.measured_s)}, predicted "
        f"{readable_seconds(point.predicted_s)} ({100 * error:+.1f} %)"
    )
    whisker = ""
    if point.low_s is not None and point.high_s is not None:
        ends = [up.at(max(up.low, min(up.high, math.log10(max(s, 1e-9))))) for s in (point.low_s, point.high_s)]
        whisker = line(x, ends[0], x, ends[1], CURVES[point.series % len(CURVES)])
    yield f"<g>{hint(words)}{whisker}{marker(x, y, point.series, _hollow(point.series), MARKER_SCALE)}</g>"


def _hollow(series: int) -> bool:
    """A second round of the colours is hollow."""
    return series // len(CURVES) % 2 == 1
