"""Rows of figures, made up."""

from pipebench.algorithms.balance import BALANCE
from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Row


def result(cell: Cell, throughput: float | None, **more: object) -> Result:
    """A cell with that throughput, None: infeasible."""
    fields = {
        "model": cell.model or "",
        "profile": "p",
        "cluster": cell.cluster,
        "devices": cell.devices,
        "mini_batch": cell.mini_batch or 1,
        "regime": cell.regime or "sync",
        "problem_id": "",
        "workload_id": "",
        "planner": cell.planner,
        "status": "infeasible" if throughput is None else "ok",
        "throughput": throughput,
        "stages": 4,
        "counters": {BALANCE: 1250},
    } | more
    return Result(cell=cell, row=Row(**fields))  # type: ignore[arg-type]
