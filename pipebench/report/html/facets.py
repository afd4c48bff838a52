"""The choices by which a page is filtered: who ran, how it ended, and the axes of the problems."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipebench.report.html.problem_grid import ProblemGrid
from pipebench.report.html.template import fragment


@dataclass(frozen=True, slots=True)
class FilteredLine:
    """What a line of the table of all rows is filtered by. problem: a workload_id."""

    problem: str
    regime: str
    planner: str
    status: str


@dataclass(frozen=True, slots=True)
class Facets:
    """by_line, by_problem: the values of each facet by its name; those with one value are left out.

    places: for each line its problem's number, then the place of its value in each facet of by_line.
    """

    by_line: dict[str, tuple[str, ...]]
    by_problem: dict[str, tuple[str, ...]]
    places: tuple[tuple[int, ...], ...]


def facets(grid: ProblemGrid, lines: Sequence[FilteredLine]) -> Facets:
    """The facets of a page with these lines."""
    columns = {
        "regime": [line.regime for line in lines],
        "planner": [line.planner for line in lines],
        "status": [line.status for line in lines],
    }
    values = {name: tuple(dict.fromkeys(column)) for name, column in columns.items() if len(set(column)) > 1}
    numbers = {name: {value: place for place, value in enumerate(found)} for name, found in values.items()}
    problem = {name: place for place, name in enumerate(grid.problems)}
    return Facets(
        by_line=values,
        by_problem={axis.name: axis.values for axis in grid.axes},
        places=tuple(
            (problem[line.problem], *(numbers[name][columns[name][place]] for name in values))
            for place, line in enumerate(lines)
        ),
    )


def filter_form(found: Facets) -> Markup:
    """The form with the facets, and words."""
    return Markup(fragment("filters.html", facets=found))


def page_data(found: Facets, grid: ProblemGrid, shown: Mapping[str, int]) -> Markup:
    """What the scripts need, as JSON that may stand inside a script element.

    shown: how many of each list are shown at once.
    """
    data = {"lines": found.places, "shown": shown, **grid.plain()}
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", r"\u003c"))
