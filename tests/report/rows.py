"""Rows for tests of what is printed."""

from typing import Any

from pipebench.domain.row import Row


def row(planner: str, **fields: Any) -> Row:
    """A finished row of one small problem, fields as given."""
    given: dict[str, Any] = {
        "model": "mmt", "profile": "mmt", "cluster": "summit", "devices": 8, "mini_batch": 128, "regime": "sync",
        "problem_id": "p", "workload_id": "w", "planner": planner,
        "scheduler": "1f1b", "named_scheduler": "", "status": "ok",
        "bound_s": 0.5, "bound_kind": "work", "fit": "fits", "throughput": 140.0, "gap": 0.1, "search_cpu_s": 0.05,
    }  # fmt: skip
    return Row(**(given | fields))
