"""Rows as a comparison would leave them."""

from typing import Any

from pipebench.domain.row import Row


def row(planner: str, problem: str, value_s: float | None = None, **fields: Any) -> Row:
    """A solved row, or a crashed one when there is no value."""
    known: dict[str, Any] = {
        "model": problem,
        "profile": problem,
        "cluster": "flat",
        "devices": 4,
        "mini_batch": 16,
        "regime": "sync",
        "problem_id": problem,
        "workload_id": problem,
        "planner": planner,
        "scheduler": "1f1b" if value_s is not None else "",
        "status": "ok" if value_s is not None else "crashed",
        "simulated_s": value_s,
        "search_cpu_s": 0.5 if value_s is not None else None,
        "bound_s": 0.5,
    }
    return Row(**(known | fields))
