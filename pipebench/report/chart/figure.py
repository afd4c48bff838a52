"""A figure: a title, a legend, panels in rows, each with axes, curves and a strip of cells without a schedule."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.domain.artefact import Curve, Figure, Panel
from pipebench.report.chart.colours import PALE
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    Axis,
    around,
    cross,
    document,
    from_zero,
    line,
    marker,
    name,
    path,
    text,
)

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
    return len(_infeasible_curves(panel))


def panel_elements(panel: Panel, left: float, top: float, rows: int) -> Iterator[str]:
    """The elements of a panel whose upper left corner is given. rows: of the strip, its own fill the lowest."""
    strip = _infeasible_curves(panel)
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


def _infeasible_curves(panel: Panel) -> list[Curve]:
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


COLUMNS = 3
MARGIN, HEAD = 16.0, 34.0
SAMPLE, LINE = 40.0, 20.0
"""Width of a legend's sample line, height of its lines."""


@dataclass(frozen=True, slots=True)
class _Entry:
    curve: Curve
    infeasible: int

    @property
    def words(self) -> str:
        return f"{self.curve.label} ({self.infeasible} infeasible)" if self.infeasible else self.curve.label


def svg(figure: Figure) -> str:
    """The figure as an SVG file. The strip of crosses above a plot shows where a curve has no schedule."""
    rows = [figure.panels[first : first + COLUMNS] for first in range(0, len(figure.panels), COLUMNS)]
    entries = _entries(figure)
    width = max(
        2 * MARGIN + WIDTH * min(COLUMNS, max(1, len(figure.panels))),
        2 * MARGIN + LETTER * len(figure.title) * 1.15,
        2 * MARGIN + max((SAMPLE + LETTER * len(entry.words) for entry in entries), default=0.0),
    )
    legend, top = _legend(entries, width)
    inside = [text(MARGIN, MARGIN + SIZE, figure.title, bold=True), *legend]
    if not figure.panels:
        inside.append(text(MARGIN, top + SIZE, "no cell was run"))
        top += LINE
    for row in rows:
        strips = max(map(rows_of, row))
        for column, panel in enumerate(row):
            inside += panel_elements(panel, MARGIN + WIDTH * column, top, strips)
        top += height_of(strips)
    return document(width, top + MARGIN, figure.title, inside)


def _entries(figure: Figure) -> list[_Entry]:
    """One for each label, with the infeasible cells of all panels."""
    curves: dict[str, Curve] = {}
    infeasible: dict[str, int] = {}
    for panel in figure.panels:
        for curve in panel.curves:
            curves.setdefault(curve.label, curve)
            infeasible[curve.label] = infeasible.get(curve.label, 0) + len(curve.infeasible)
    return [_Entry(curve, infeasible[label]) for label, curve in curves.items()]


def _legend(entries: list[_Entry], width: float) -> tuple[list[str], float]:
    """The legend in as many columns as there is room for, and where it ends."""
    if not entries:
        return [], HEAD
    each = SAMPLE + LETTER * max(len(entry.words) for entry in entries) + 18
    columns = max(1, min(len(entries), int((width - 2 * MARGIN) // each)))
    elements: list[str] = ['<g class="legend">']
    for position, entry in enumerate(entries):
        line, column = divmod(position, columns)
        elements += _sample(entry, MARGIN + each * column, HEAD + LINE * (line + 1))
    lines = -(-len(entries) // columns)
    if any(entry.infeasible for entry in entries):
        lines += 1
        elements.append(text(MARGIN + SAMPLE, HEAD + LINE * lines, "above a plot: no schedule there"))
        elements.append(cross(MARGIN + SAMPLE / 2 - 4, HEAD + LINE * lines - 4, 4))
    elements.append("</g>")
    return elements, HEAD + LINE * lines + 16


def _sample(entry: _Entry, x: float, y: float) -> Iterator[str]:
    dashed = entry.curve.kind == "estimate"
    yield path([(x, y - 4), (x + SAMPLE - 8, y - 4)], entry.curve.colour, dashed)
    yield marker(x + SAMPLE / 2 - 4, y - 4, entry.curve.colour, hollow=dashed)
    yield text(x + SAMPLE, y, entry.words)
