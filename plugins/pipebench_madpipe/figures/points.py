"""Rows of the grid by where they stand, and what they say of a contender there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Row
from pipebench_madpipe.figures.grid import SEQUENTIAL

NO_PLAN = ("infeasible", "invalid_plan")
"""A contender that was run and has no schedule; other failures say nothing of the paper."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """One cell of the paper's grid."""

    network: str
    devices: int
    memory_gb: float
    bandwidth_gb_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """period_s: of the schedule; estimate_s: what the first phase expected; both None where there is none."""

    period_s: float | None
    estimate_s: float | None


@dataclass(frozen=True, slots=True)
class Points:
    """Outcomes by point and contender's key; sequential: U(1, L) in seconds by network.

    lost: a line for each kind of trouble (a planner that does not exist, a time limit) with its count.
    """

    outcomes: Mapping[Point, Mapping[str, Outcome]]
    sequential: Mapping[str, float] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    def places(self, *axes: str) -> list[tuple[Any, ...]]:
        """The distinct values of these axes, networks in the order in which they were run, numbers ascending."""
        turn = {network: turn for turn, network in enumerate(self.networks)}
        found = {tuple(getattr(point, axis) for axis in axes) for point in self.outcomes}
        return sorted(found, key=lambda place: tuple(turn.get(value, value) for value in place))

    def along(self, **at: Any) -> list[Point]:
        """The points with these values, ascending."""
        return sorted(p for p in self.outcomes if all(getattr(p, axis) == value for axis, value in at.items()))

    @property
    def networks(self) -> list[str]:
        """In the order in which they were run."""
        return list(dict.fromkeys(point.network for point in self.outcomes))

    def period(self, point: Point, key: str) -> float | None:
        """Seconds of the contender's schedule there; None where it has none or was not run."""
        outcome = self.outcomes[point].get(key)
        return outcome.period_s if outcome else None

    def infeasible(self, point: Point, key: str) -> bool:
        """Whether it was run there and has no schedule."""
        outcome = self.outcomes[point].get(key)
        return outcome is not None and outcome.period_s is None


def points_of(results: Sequence[Result]) -> Points:
    """All results of the grid by where they stand."""
    outcomes: dict[Point, dict[str, Outcome]] = {}
    sequential: dict[str, float] = {}
    lost: dict[str, int] = {}
    for result in results:
        cell, row = result.cell, result.row
        key = str(cell.at["series"])
        if row.status not in ("ok", *NO_PLAN):
            trouble = f"{cell.planner}: {row.status}: {row.reason}"
            lost[trouble] = lost.get(trouble, 0) + 1
        elif key == SEQUENTIAL:
            if row.simulated_s is not None:
                sequential[str(cell.at["network"])] = row.simulated_s
        else:
            outcomes.setdefault(_point(cell), {})[key] = _outcome(row)
    return Points(outcomes, sequential, tuple(f"{count} x {text}" for text, count in lost.items()))


def _point(cell: Cell) -> Point:
    at = cell.at
    return Point(str(at["network"]), int(at["devices"]), float(at["memory_gb"]), float(at["bandwidth_gb_s"]))


def _outcome(row: Row) -> Outcome:
    return Outcome(row.simulated_s if row.status == "ok" else None, row.claimed_s)
