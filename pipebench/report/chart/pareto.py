"""Quality against search time on one problem in one regime: a marker for each plan, and the line of the best."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_seconds
from pipebench.report.chart.colours import INK, PALE
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    SMALL_WIDTH,
    Axis,
    dashed_line,
    document,
    hint,
    line,
    marker,
    name,
    round_ticks,
    shortened,
    text,
)

LEFT, RIGHT, HEAD, HEIGHT, BELOW, ENTRY = 40.0, 14.0, 46.0, 150.0, 44.0, 18.0
"""Pixels: beside, above, of and below the plot, and of a line of the legend."""
MARKER_SCALE = 1.3
LEAST_ROOM = 2.0
"""Per cent between the lowest plan and the floor."""


@dataclass(frozen=True, slots=True)
class QualityPoint:
    """A plan. number: of who made it, which gives colour and shape.

    share: bound / simulated time, above 0 and at most 1. search_s: CPU time, above 0.
    """

    name: str
    number: int
    share: float
    search_s: float


def pareto_front(points: Sequence[QualityPoint]) -> list[QualityPoint]:
    """By search time, the points that no other beats: better and no slower to find, or as good and faster."""
    front: list[QualityPoint] = []
    for point in sorted(points, key=lambda each: (each.search_s, -each.share)):
        if not front or point.share > front[-1].share or _same_place(point, front[-1]):
            front.append(point)
    return front


def _same_place(one: QualityPoint, other: QualityPoint) -> bool:
    return (one.share, one.search_s) == (other.share, other.search_s)


def pareto_svg(points: Sequence[QualityPoint], title: str) -> str:
    """The chart as an SVG file. Markers of plans that another one beats are hollow.

    The line is the best that is found in so much time. The axis of quality ends at the bound and need not start
    at 0. points: at least one.
    """
    front = pareto_front(points)
    floor = HEAD + HEIGHT
    up = _quality_axis(points, floor)
    across = _time_axis(points)
    inside = [text(LETTER, SIZE + 4, title, bold=True), *_axes(across, up)]
    inside.append(_front_line(front, across, up))
    for point in sorted(points, key=lambda each: each in front):
        hollow = point not in front
        x, y = across.at(math.log10(point.search_s)), up.at(100 * point.share)
        inside.append(f"<g>{hint(_words(point))}{marker(x, y, point.number, hollow, MARKER_SCALE)}</g>")
    best_first = sorted(points, key=lambda each: (-each.share, each.search_s))
    for position, point in enumerate(best_first):
        y = floor + BELOW + ENTRY * position + 8
        inside.append(marker(LEFT - 6, y - 4, point.number, point not in front, MARKER_SCALE))
        inside.append(text(LEFT + 6, y, shortened(point.name, SMALL_WIDTH - LEFT - 6)))
    height = floor + BELOW + ENTRY * len(points) + 4
    best = ", ".join(point.name for point in front)
    described = f"{'; '.join(map(_words, best_first))}. No other plan is better and found as fast: {best}."
    return document(SMALL_WIDTH, height, title, inside, described)


def _words(point: QualityPoint) -> str:
    return f"{point.name}: {100 * point.share:.1f} % of the bound, found in {readable_seconds(point.search_s)}"


def _quality_axis(points: Sequence[QualityPoint], floor: float) -> Axis:
    low = max(0.0, 100 * min(point.share for point in points) - LEAST_ROOM)
    ticks = round_ticks(low, 100.0)
    return Axis(ticks[0], 100.0, floor, HEAD, ticks)


def _time_axis(points: Sequence[QualityPoint]) -> Axis:
    """Of the powers of ten of seconds: whole decades around all points."""
    powers = [math.log10(point.search_s) for point in points]
    low = math.floor(min(powers))
    high = max(math.ceil(max(powers)), low + 1)
    return Axis(low, high, LEFT, SMALL_WIDTH - RIGHT, tuple(range(low, high + 1)))


def _axes(across: Axis, up: Axis) -> Iterator[str]:
    for tick in up.ticks:
        yield line(across.start, up.at(tick), across.end, up.at(tick), PALE)
        yield text(across.start - 6, up.at(tick) + 4, name(tick), anchor="end")
    decade = (across.end - across.start) / len(across.ticks[1:])
    every = math.ceil(LETTER * len("100 ms") / decade)
    for position, power in enumerate(across.ticks):
        if position % every == 0:
            yield line(across.at(power), up.start, across.at(power), up.start + 5)
            middle = min(across.at(power), SMALL_WIDTH - LETTER * 2.5)
            yield text(middle, up.start + 18, _power_of_ten(power), anchor="middle")
        for digit in range(2, 10) if every == 1 and power < across.high else ():
            x = across.at(power + math.log10(digit))
            yield line(x, up.start, x, up.start + 3)
    yield line(across.start, up.start, across.end, up.start)
    yield dashed_line(across.start, up.at(100.0), across.end, INK)
    yield text(across.start - LEFT + LETTER, HEAD - 12, "% of the bound")
    yield text((across.start + across.end) / 2, up.start + 33, "search (CPU time)", anchor="middle")


def _power_of_ten(power: float) -> str:
    """10 ms, 1 s: as short as can be."""
    unit, factor = next((each for each in (("s", 0), ("ms", -3), ("us", -6)) if power >= each[1]), ("ns", -9))
    return f"{10 ** (power - factor):,.0f} {unit}"


def _front_line(front: Sequence[QualityPoint], across: Axis, up: Axis) -> str:
    """Steps: from each point on until a better one is found, and from the last on to the end."""
    corners: list[tuple[float, float]] = []
    for point in front:
        x, y = across.at(math.log10(point.search_s)), up.at(100 * point.share)
        corners += [(x, corners[-1][1])] if corners else []
        corners.append((x, y))
    corners.append((across.end, corners[-1][1]))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-width="1.2" class="front"/>'
