"""Rows of a figure by where they stand, and what they say of a contender there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipebench.domain.artefact import Result
from pipebench.domain.row import Row
from pipebench_graphpipe.artefacts.contenders import Contender

NO_PLAN = ("infeasible", "invalid_plan", "unsupported")
"""A contender that was run and has no plan; other failures say nothing of the paper."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One problem. micro_batch 0: the planners' choice; memory_gb 0: the platform's own."""

    network: str
    devices: int
    mini_batch: int
    micro_batch: int = 0
    memory_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows by place and contender's key. lost: a line for each kind of trouble with its count."""

    rows: Mapping[Place, Mapping[str, Row]]
    lost: tuple[str, ...] = ()

    def places(self, **at: Any) -> list[Place]:
        """Those with these values, in the order in which they were run."""
        return [p for p in self.rows if all(getattr(p, axis) == value for axis, value in at.items())]

    def values(self, axis: str, **at: Any) -> list[Any]:
        """The distinct values of an axis there, in the order in which they were run."""
        return list(dict.fromkeys(getattr(place, axis) for place in self.places(**at)))

    def row(self, place: Place, contender: Contender) -> Row | None:
        """Its row where it has a plan."""
        row = self.rows.get(place, {}).get(contender.key)
        return row if row is not None and row.status == "ok" else None

    def refused(self, place: Place, contender: Contender) -> bool:
        """Whether it was run there and has no plan."""
        row = self.rows.get(place, {}).get(contender.key)
        return row is not None and row.status in NO_PLAN

    def throughput(self, place: Place, contender: Contender) -> float | None:
        """Simulated samples a second; None where it has no plan or was not run."""
        row = self.row(place, contender)
        return row.throughput if row is not None else None

    def ratio(self, place: Place, high: Contender, low: Contender) -> float | None:
        """Throughput over throughput where both have a plan."""
        one, other = self.throughput(place, high), self.throughput(place, low)
        return one / other if one and other else None

    def both(
        self, one: Contender, other: Contender, places: Sequence[Place] | None = None
    ) -> Iterator[tuple[Place, Row, Row]]:
        """Where both have a plan."""
        for place in self.rows if places is None else places:
            rows = self.row(place, one), self.row(place, other)
            if rows[0] is not None and rows[1] is not None:
                yield place, rows[0], rows[1]

    def fastest(self, contender: Contender, places: Sequence[Place]) -> Place | None:
        """The place of its highest throughput."""
        known = [place for place in places if self.throughput(place, contender)]
        return max(known, key=lambda place: self.throughput(place, contender) or 0.0, default=None)


def measured(results: Sequence[Result]) -> Measured:
    """All results by where they stand."""
    rows: dict[Place, dict[str, Row]] = {}
    lost: dict[str, int] = {}
    for result in results:
        cell, row = result.cell, result.row
        if row.status not in ("ok", *NO_PLAN):
            trouble = f"{cell.planner}: {row.status}: {row.reason}"
            lost[trouble] = lost.get(trouble, 0) + 1
        at = cell.at
        place = Place(
            str(at["network"]),
            int(at["devices"]),
            int(at["mini_batch"]),
            int(at.get("micro_batch", 0)),
            float(at.get("memory_gb", 0.0)),
        )
        rows.setdefault(place, {})[str(at["series"])] = row
    return Measured(rows, tuple(f"{count} x {text}" for text, count in lost.items()))


def listed(values: Sequence[float], form: Callable[[float], str] = "{:.2f}".format) -> str:
    """Figures in a line."""
    return " / ".join(map(form, values))
