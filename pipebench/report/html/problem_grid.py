"""The problems of a page on their axes, and what each contender did on each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipebench.bench.standings.axes import ProblemAxis, problem_axes
from pipebench.bench.standings.cells import EntrantCell, entrant_of, grid
from pipebench.bench.standings.records import Entrant
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.report.problem_blocks import REGIMES, contender_title


@dataclass(frozen=True, slots=True)
class ProblemGrid:
    """problems: workload_ids, as the sections of the page follow each other.

    axes: on which the problems differ. cells: by regime, contender and workload_id; contenders in the order of the
    comparison, yardsticks last.
    """

    problems: tuple[str, ...]
    axes: tuple[ProblemAxis, ...]
    cells: Mapping[RegimeMode, Mapping[str, Mapping[str, EntrantCell]]]
    yardsticks: frozenset[str]

    @property
    def regimes(self) -> tuple[RegimeMode, ...]:
        """In which somebody ran."""
        return tuple(self.cells)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Of all regimes, each once, yardsticks last."""
        names = dict.fromkeys(name for found in self.cells.values() for name in found)
        return tuple(sorted(names, key=lambda name: name in self.yardsticks))

    def places(self, problem: str) -> tuple[int, ...]:
        """Where a problem lies on each axis."""
        return tuple(axis.of_problem[problem] for axis in self.axes)

    def plain(self) -> dict[str, Any]:
        """What the page's script needs, as builtins.

        problems: for each problem its place on each axis. times: by regime, contender and problem the time in ns,
        0 where it has no plan, None where it does not take the problem, -1 where it has no row.
        """
        return {
            "axes": [{"name": axis.name, "values": axis.values} for axis in self.axes],
            "problems": [self.places(problem) for problem in self.problems],
            "regimes": self.regimes,
            "contenders": self.contenders,
            "times": [
                [
                    [_plain_time(self.cells[mode].get(name, {}).get(problem)) for problem in self.problems]
                    for name in self.contenders
                ]
                for mode in self.regimes
            ],
        }


def problem_grid(rows: Sequence[Row]) -> ProblemGrid:
    """The grid of the rows of a page."""
    cells = {mode: _cells([row for row in rows if row.regime == mode]) for mode in REGIMES}
    return ProblemGrid(
        problems=tuple(dict.fromkeys(row.workload_id for row in rows)),
        axes=problem_axes(rows),
        cells={mode: found for mode, found in cells.items() if found},
        yardsticks=frozenset(contender_title(row) for row in rows if row.yardstick),
    )


def _cells(rows: Sequence[Row]) -> dict[str, dict[str, EntrantCell]]:
    """By contender, then workload_id. A yardstick that was compared besides is a contender of its own."""
    workload = {row.problem_id: row.workload_id for row in rows}
    found: dict[str, dict[str, EntrantCell]] = {}
    for some in ([row for row in rows if not row.yardstick], [row for row in rows if row.yardstick]):
        titles = _titles(some)
        for entrant, problems in grid(some).items():
            found.setdefault(titles[entrant], {}).update(
                {workload[problem]: cell for problem, cell in problems.items()}
            )
    return found


def _titles(rows: Iterable[Row]) -> dict[Entrant, str]:
    return {entrant_of(row): contender_title(row) for row in rows}


def _plain_time(cell: EntrantCell | None) -> int | None:
    if cell is None:
        return -1
    if cell.status == "unsupported":
        return None
    return 0 if cell.value_ns is None else max(cell.value_ns, 1)
