"""Results made by hand: a cell at a place, and a row."""

from dataclasses import dataclass
from typing import Any

from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Row

FAST = Contender("fast", "the fast one", "fast[x=1]", 3, "F")
SLOW = Contender("slow", "the slow one", "slow", 1)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A network on a number of devices; memory_gb 0: the cluster's own."""

    network: str
    devices: int
    memory_gb: float = 0.0


def result(who: Contender, at: dict[str, str | float], status: Any = "ok", **fields: Any) -> Result:
    """The contender's row there."""
    row = Row(
        model="m",
        profile="p",
        cluster="flat",
        devices=2,
        mini_batch=8,
        regime="sync",
        problem_id="",
        workload_id="",
        planner=who.planner,
        status=status,
        reason="" if status == "ok" else "it did not",
        **fields,
    )
    return Result(cell=Cell(at=at | {"series": who.key}, planner=who.planner, profile="p", devices=2), row=row)
