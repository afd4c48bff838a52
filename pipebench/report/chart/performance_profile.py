"""Performance profiles as a picture: the share of problems within a factor of the best, a step curve for each."""

import math
from collections.abc import Iterator, Sequence

from pipebench.bench.standings.profiles import PerformanceCurve
from pipebench.report.chart.colours import CURVES, PALE
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    Axis,
    document,
    hint,
    line,
    marker,
    name,
    path,
    text,
)

WIDTH, HEIGHT, LEFT, RIGHT, HEAD, MARGIN = 560.0, 260.0, 60.0, 20.0, 48.0, 16.0
FOOT, ENTRY = 52.0, 20.0
"""Heights of what stands below the plot, and of one line of the legend."""
FACTORS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0, 10_000.0)
"""Where the axis of factors may end, and has ticks."""
SMALLEST_LAST = 1.1
FEWEST_PIXELS = 34.0
"""Between two ticks."""
MARKS = 5
"""On each curve, so that a reader who sees no colours tells it from others."""


def performance_profile_svg(curves: Sequence[PerformanceCurve], problems: int, title: str) -> str:
    """One step curve for each entrant over log tau. problems: of the regime, the whole of every share.

    Steps beyond the last factor of the axis are left out; the legend has the counts.
    """
    last = max([SMALLEST_LAST, *(tau for curve in curves for tau, _ in curve.steps)])
    end = next((factor for factor in FACTORS if factor >= last), FACTORS[-1])
    across = Axis(0.0, math.log(end), LEFT, WIDTH - RIGHT, ())
    up = Axis(0.0, 1.0, HEAD + HEIGHT, HEAD, ())
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_axes(across, up, end)]
    for number, curve in enumerate(curves):
        inside.append(f'<g class="curve">{hint(_words(curve, problems))}')
        inside += _curve(curve, number, problems, across, up)
        inside.append("</g>")
    top = HEAD + HEIGHT + FOOT
    for number, curve in enumerate(curves):
        y = top + ENTRY * number
        inside.append(path([(MARGIN, y), (MARGIN + 32, y)], number, _dashed(number)))
        inside.append(marker(MARGIN + 16, y, number))
        inside.append(text(MARGIN + 40, y + 4, _words(curve, problems)))
    longest = max((len(_words(curve, problems)) for curve in curves), default=0)
    width = max(WIDTH, MARGIN + 40 + LETTER * longest, 2 * MARGIN + LETTER * 1.15 * len(title))
    return document(width, top + ENTRY * len(curves), title, inside)


def _words(curve: PerformanceCurve, problems: int) -> str:
    return f"{curve.entrant}: best on {curve.best}, a plan on {curve.solved} of {problems}"


def _dashed(number: int) -> bool:
    """The second round of colours."""
    return number >= len(CURVES)


def _curve(curve: PerformanceCurve, number: int, problems: int, across: Axis, up: Axis) -> Iterator[str]:
    """From no problem at tau 1 in steps to the end of the axis; what falls on one pixel is one step."""
    places = [(across.start, up.start)]
    for tau, count in curve.steps:
        x, y = across.at(math.log(tau)), up.at(count / problems)
        if x > across.end + 1e-6:
            break
        if x - places[-1][0] >= 0.5:
            places += [(x, places[-1][1]), (x, y)]
        else:
            places[-1] = (places[-1][0], y)
    places.append((across.end, places[-1][1]))
    yield path(places, number, _dashed(number))
    for part in range(1, MARKS + 1):
        x = across.start + (across.end - across.start) * (part - 0.5 + 0.1 * (number % 4)) / MARKS
        yield marker(x, _height_at(places, x), number)


def _height_at(places: Sequence[tuple[float, float]], x: float) -> float:
    """The pixel of a step curve at x."""
    return [y for left, y in places if left <= x][-1]


def _axes(across: Axis, up: Axis, end: float) -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = up.at(percent / 100)
        yield line(across.start, y, across.end, y, PALE, 0.6)
        yield text(across.start - 6, y + 4, f"{percent} %", anchor="end")
    free = -math.inf
    for factor in FACTORS:
        x = across.at(math.log(factor))
        if factor <= end and x >= free:
            yield line(x, up.start, x, up.end, PALE, 0.6)
            yield text(x, up.start + 16, name(factor), anchor="middle")
            free = x + FEWEST_PIXELS
    middle = (across.start + across.end) / 2
    yield text(middle, up.start + 34, "time / best of the compared (logarithmic)", anchor="middle")
    yield text(14, (up.start + up.end) / 2, "share of problems", anchor="middle", turned=True)
