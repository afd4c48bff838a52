"""One panel: axes, curves, and a strip above them with the cells that have no schedule."""

from collections import Counter
from collections.abc import Iterator

from pipebench.domain.artefact import Curve, Panel
from pipebench.report.chart.axis import Axis, around, from_zero, name
from pipebench.report.chart.elements import PALE, SIZE, cross, line, marker, path, text

WIDTH, PLOT_HEIGHT = 380.0, 230.0
LEFT, RIGHT, ABOVE, BELOW = 62.0, 14.0, 30.0, 48.0
MOST_WIDER = 3
ROW = 14.0
"""Height of one row of the strip."""


def height_of(rows: int) -> float:
    """Pixels that a panel takes whose strip has so many rows."""
    return ABOVE + ROW * rows + PLOT_HEIGHT + BELOW


def rows_of(panel: Panel) -> int:
    """Rows of the strip: one for each curve that lacks a schedule somewhere."""
    return len(_without(panel))


def drawn(panel: Panel, left: float, top: float, rows: int) -> Iterator[str]:
    """The elements of a panel whose upper left corner is given. rows: of the strip, its own fill the lowest."""
    strip = _without(panel)
    ceiling = top + ABOVE + ROW * rows
    floor = ceiling + PLOT_HEIGHT
    xs = [x for curve in panel.curves for x, _ in curve.points]
    xs += [x for curve in panel.curves for x in curve.infeasible]
    ys = [y for curve in panel.curves for _, y in curve.points]
    across = around(xs, left + LEFT, left + WIDTH - RIGHT)
    up = from_zero(ys, floor, ceiling)
    yield '<g class="panel">'
    yield text(left + (LEFT + WIDTH - RIGHT) / 2, top + SIZE + 4, panel.title, anchor="middle", bold=True)
    yield from _axes(panel, across, up)
    for row, curve in enumerate(strip):
        yield from _crosses(curve, across, ceiling - ROW * (len(strip) - row - 0.5) - 4)
    for position, curve in enumerate(panel.curves):
        over = len(panel.curves) - 1 - position
        yield from _curve(curve, across, up, min(MOST_WIDER, over))
    yield "</g>"


def _without(panel: Panel) -> list[Curve]:
    return [curve for curve in panel.curves if curve.infeasible]


def _axes(panel: Panel, across: Axis, up: Axis) -> Iterator[str]:
    for tick in up.ticks:
        yield line(across.start, up.at(tick), across.end, up.at(tick), PALE)
        yield text(across.start - 6, up.at(tick) + 4, name(tick), anchor="end")
    for tick in across.ticks:
        yield line(across.at(tick), up.start, across.at(tick), up.start + 4)
        yield text(across.at(tick), up.start + 17, name(tick), anchor="middle")
    yield line(across.start, up.start, across.end, up.start)
    yield line(across.start, up.start, across.start, up.end)
    yield text((across.start + across.end) / 2, up.start + 36, panel.x_label, anchor="middle")
    yield text(
        across.start - LEFT + SIZE + 2, (up.start + up.end) / 2, panel.y_label, anchor="middle", turned=True
    )


def _crosses(curve: Curve, across: Axis, y: float) -> Iterator[str]:
    for x, count in sorted(Counter(curve.infeasible).items()):
        yield cross(across.at(x), y, curve.colour)
        if count > 1:
            yield text(across.at(x) + 6, y + 4, str(count))


def _curve(curve: Curve, across: Axis, up: Axis, wider: int) -> Iterator[str]:
    """wider: curves drawn over this one, so that one below another of the same values can be seen."""
    places = [(across.at(x), up.at(y)) for x, y in sorted(curve.points)]
    dashed = curve.kind == "estimate"
    if len(places) > 1:
        yield path(places, curve.colour, dashed, 1.6 + 0.7 * wider)
    for x, y in places:
        yield marker(x, y, curve.colour, hollow=dashed, scale=1 + 0.12 * wider)
