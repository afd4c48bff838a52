"""The rows of an artefact by place and contender.

A place is the problem that a cell stands for: a frozen dataclass of the artefact's axes (network, devices, …). Its
fields are the names in `Cell.at`; `series` there is the contender's key. The planners of one figure are run at the
same places, so that their rows can be compared.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from pipebench.domain.artefact import Result
from pipebench.domain.row import Row

P = TypeVar("P", bound=Hashable)
Measure = Callable[[Row], float | None]
"""A figure of a row; None where the row has none."""

SERIES = "series"
"""The name in `Cell.at` under which the contender's key stands."""
NO_PLAN = ("infeasible", "invalid_plan")
"""A planner ran and has no plan. All other failures (a time limit, a crash) say nothing of the paper."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One planner of a figure.

    key: its name in cells.
    label: its name in legends and findings.
    planner: as on the command line.
    colour: number of the colour of its curves.
    short: its name over a column of a table.
    """

    key: str
    label: str
    planner: str
    colour: int = 0
    short: str = ""


def throughput(row: Row) -> float | None:
    """Simulated samples a second."""
    return row.throughput


def simulated_s(row: Row) -> float | None:
    """Seconds that the simulated schedule takes for a mini-batch."""
    return row.simulated_s


def claimed_s(row: Row) -> float | None:
    """Seconds for a mini-batch that the planner itself expects."""
    return row.claimed_s


def search_cpu_s(row: Row) -> float | None:
    """Median CPU seconds of the warm searches."""
    return row.search_cpu_s


class ResultGrid(Generic[P]):
    """Rows by place and contender, in the order of the results.

    rows: by place and the contender's key.
    no_plan: statuses of a planner that ran and has no plan.
    lost: a line for each kind of trouble, with its count.
    """

    def __init__(self, rows: Mapping[tuple[P, str], Row], no_plan: Sequence[str], lost: Sequence[str]) -> None:
        self._rows = rows
        self._no_plan = no_plan
        self._places: tuple[P, ...] = tuple(dict.fromkeys(place for place, _ in rows))
        self.lost = tuple(lost)

    def places(self, **axes: Any) -> list[P]:
        """The places with these values."""
        return [p for p in self._places if all(getattr(p, axis) == value for axis, value in axes.items())]

    def values(self, axis: str, **axes: Any) -> list[Any]:
        """The distinct values of an axis at the places with these values."""
        return list(dict.fromkeys(getattr(place, axis) for place in self.places(**axes)))

    def row(self, place: P, who: Contender) -> Row | None:
        """The contender's row, whatever its status; None where it was not run."""
        return self._rows.get((place, who.key))

    def rows(self, who: Contender) -> Iterator[tuple[P, Row]]:
        """All rows of a contender, whatever their status."""
        return ((place, row) for (place, key), row in self._rows.items() if key == who.key)

    def plan_row(self, place: P, who: Contender) -> Row | None:
        """The contender's row where it has a plan."""
        row = self.row(place, who)
        return row if row is not None and row.status == "ok" else None

    def has_no_plan(self, place: P, who: Contender) -> bool:
        """Whether the contender ran there and has no plan."""
        row = self.row(place, who)
        return row is not None and row.status in self._no_plan

    def value(self, place: P, who: Contender, measure: Measure) -> float | None:
        """The figure of the contender's plan; None where it has no plan or was not run."""
        row = self.plan_row(place, who)
        return measure(row) if row is not None else None

    def lacks(self, place: P, who: Contender, measure: Measure) -> bool:
        """Whether the contender was run there, with whatever end, and has no such figure."""
        return self.row(place, who) is not None and self.value(place, who, measure) is None

    def rate(self, place: P, who: Contender) -> float | None:
        """Simulated samples a second of the contender's plan."""
        return self.value(place, who, throughput)

    def ratio(self, place: P, high: Contender, low: Contender, measure: Measure = throughput) -> float | None:
        """Figure of `high` / figure of `low`; None where one of them has none, or zero."""
        one, other = self.value(place, high, measure), self.value(place, low, measure)
        return one / other if one and other else None

    def ratios(
        self, high: Contender, low: Contender, measure: Measure = throughput, places: Iterable[P] | None = None
    ) -> dict[P, float]:
        """The ratio at each of the places (default: all) where there is one."""
        where = self._places if places is None else places
        return {p: ratio for p in where if (ratio := self.ratio(p, high, low, measure)) is not None}

    def both(
        self, one: Contender, other: Contender, places: Iterable[P] | None = None
    ) -> Iterator[tuple[P, Row, Row]]:
        """Place and rows where both have a plan."""
        for place in self._places if places is None else places:
            first, second = self.plan_row(place, one), self.plan_row(place, other)
            if first is not None and second is not None:
                yield place, first, second

    def best_place(self, who: Contender, places: Iterable[P], measure: Measure = throughput) -> P | None:
        """The place of the contender's largest figure; None where it has none above zero."""
        values = {place: value for place in places if (value := self.value(place, who, measure))}
        return max(values, key=lambda place: values[place], default=None)


def result_grid(
    results: Sequence[Result], place: type[P], *, no_plan: Sequence[str] = NO_PLAN, skip_trouble: bool = False
) -> ResultGrid[P]:
    """Results by place and contender.

    place: the dataclass of the artefact's axes.
    no_plan: statuses of a planner that ran and has no plan.
    skip_trouble: rows that are neither `ok` nor of these statuses are counted in `lost` and left out.

    Raises msgspec.ValidationError where a cell lacks an axis, or has a fraction on an axis of integers.
    """
    rows = {
        (msgspec.convert(each.cell.at, place, strict=False), str(each.cell.at[SERIES])): each.row
        for each in results
        if not (skip_trouble and _trouble(each.row, no_plan))
    }
    return ResultGrid(rows, no_plan, troubles(results, no_plan))


def troubles(results: Sequence[Result], no_plan: Sequence[str] = NO_PLAN) -> tuple[str, ...]:
    """A line for each kind of failure that says nothing of the paper, with its count."""
    lost = Counter(
        f"{each.cell.planner}: {each.row.status}: {each.row.reason}"
        for each in results
        if _trouble(each.row, no_plan)
    )
    return tuple(f"{count} x {text}" for text, count in lost.items())


def _trouble(row: Row, no_plan: Sequence[str]) -> bool:
    return row.status not in ("ok", *no_plan)
