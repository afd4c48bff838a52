"""The table of all rows of a page: a line for each row, the best of each problem, a column for each axis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipebench.bench.standings import best_rows, fastest_rows
from pipebench.domain.row import Row
from pipebench.report.html.facets import FilteredLine
from pipebench.report.html.problem_grid import ProblemGrid
from pipebench.report.problem_blocks import contender_title
from pipebench.report.problem_names import ProblemNames
from pipebench.report.rows import COLUMNS, RowCell, cells

PLACE = ("problem", "devices")
"""Columns in whose place the axes stand, where these tell all problems of the page apart."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table. anchor: of the details that it leads to. best: repeats the fastest of its problem."""

    anchor: str
    row: Row
    cells: Sequence[RowCell]
    best: bool = False

    @property
    def filtered_by(self) -> FilteredLine:
        """What the facets of the page ask of it."""
        planner = self.row.planner if self.best else contender_title(self.row)
        return FilteredLine(self.row.workload_id, self.row.regime, planner, self.row.status)


@dataclass(frozen=True, slots=True)
class RowTable:
    """columns: name, and whether it stands to the right."""

    columns: Sequence[tuple[str, bool]]
    lines: Sequence[Line]


def row_table(rows: Iterable[tuple[str, Row]], grid: ProblemGrid, names: ProblemNames) -> RowTable:
    """The table of these rows, each with its anchor. names: of their problems."""
    columns, lines = list(COLUMNS), _lines(list(rows), names)
    if not grid.axes or len(set(map(grid.places, grid.problems))) < len(grid.problems):
        return RowTable(columns, lines)
    first = next(number for number, (name, _) in enumerate(columns) if name in PLACE)
    kept = [number for number, (name, _) in enumerate(columns) if name not in PLACE]

    def placed(line: Line) -> Line:
        found = [line.cells[number] for number in kept]
        found[first:first] = [
            RowCell(axis.values[place], place)
            for axis, place in zip(grid.axes, grid.places(line.row.workload_id), strict=True)
        ]
        return replace(line, cells=found)

    columns = [columns[number] for number in kept]
    columns[first:first] = [(axis.name, False) for axis in grid.axes]
    return RowTable(columns, list(map(placed, lines)))


def _lines(rows: Sequence[tuple[str, Row]], names: ProblemNames) -> list[Line]:
    """All rows, and behind the last one of a problem its best, named by the planner that it is of."""
    shown = [row for _, row in rows]
    winners = fastest_rows(shown)
    bests = dict(zip(winners, best_rows(shown), strict=True))
    last = {row.problem_id: number for number, row in enumerate(shown)}
    found: list[Line] = []
    for number, (anchor, row) in enumerate(rows):
        found.append(Line(anchor, row, cells(row, names)))
        problem = row.problem_id
        if last[problem] == number and problem in bests:
            winner = winners[problem]
            of_winner = next(each for each, other in rows if other is winner)
            best = bests[problem]
            named = [RowCell(f"{best.planner}: {winner.planned_by}"), *cells(best, names)[1:]]
            found.append(Line(of_winner, best, named, best=True))
    return found
