"""Results made by hand: a cell and a row; two contenders and a place for figures of two axes."""

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


def row_result(cell: Cell, status: Any = "ok", **fields: Any) -> Result:
    """The cell with a row of that status and these fields."""
    common: dict[str, Any] = {
        "model": cell.model or "",
        "profile": cell.profile or "",
        "cluster": cell.cluster,
        "devices": cell.devices,
        "mini_batch": cell.mini_batch or 1,
        "regime": cell.regime or "sync",
        "problem_id": "",
        "workload_id": "",
        "planner": cell.planner,
        "reason": "" if status == "ok" else "it did not",
    }
    return Result(cell=cell, row=Row(**common | {"status": status} | fields))


def result(who: Contender, at: dict[str, str | float], status: Any = "ok", **fields: Any) -> Result:
    """The contender's row at a place."""
    cell = Cell(at=at | {"series": who.key}, planner=who.planner, profile="p", devices=2)
    return row_result(cell, status, **fields)
