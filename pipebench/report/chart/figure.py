"""A figure: a title, a legend that counts what has no schedule, panels in rows."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.domain.artefact import Curve, Figure
from pipebench.report.chart.elements import LETTER, SIZE, cross, document, marker, path, text
from pipebench.report.chart.panel import WIDTH, drawn, height_of, rows_of

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
            inside += drawn(panel, MARGIN + WIDTH * column, top, strips)
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
