"""Rows, plans and schedules for tests of the store."""

from typing import Any

from pipebench.bench.store import StoredRow, TrialInputs, trial_key
from pipebench.bench.store.keys import ComponentInputs
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import FiniteSchedule, Lane
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM: Problem = chain_problem([3, 5], [4, 6], cluster(2), mode="sync", mini_batch=2)
PLAN: Plan = stages_plan([[0], [1]])
SCHEDULE = FiniteSchedule(
    lanes=(
        Lane(devices=(0,), stage=(0, 0, 0, 0), micro_batch=(0, 1, 0, 1), kinds="FFBB"),
        Lane(devices=(1,), stage=(1, 1, 1, 1), micro_batch=(0, 0, 1, 1), kinds="FBFB"),
    )
)


def inputs(number: int = 0, **changed: Any) -> TrialInputs:
    """Inputs that differ by their seed."""
    fields: dict[str, Any] = {
        "problem_id": PROBLEM.problem_id,
        "regime": "sync",
        "planner": ComponentInputs(name="mine", options={"depth": 2, "greedy": True}, source="a" * 64),
        "executors": (ComponentInputs(name="simulate", source="b" * 64),),
        "called": {"schedulers/1f1b": "c" * 64},
        "seed": number,
        "timeout_s": 300.0,
        "model": 1,
        "host": "d" * 64,
        "versions": {"python": "3.11", "numpy": "2.0"},
    }
    return TrialInputs(**fields | changed)


def stored(number: int = 0, script_id: str | None = None, **row: Any) -> StoredRow:
    """A stored row; its seed is the number, its other fields are those given."""
    made = inputs(number)
    key = trial_key(made)
    fields: dict[str, Any] = {
        "model": "test",
        "profile": "test",
        "cluster": "flat",
        "devices": 2,
        "mini_batch": 2,
        "regime": "sync",
        "problem_id": PROBLEM.problem_id,
        "workload_id": PROBLEM.workload_id,
        "planner": "mine[depth=2]",
        "status": "ok",
        "key": key,
        "repetition": number,
    }
    return StoredRow(
        key=key,
        finished_at="2025-01-01T00:00:00.000+00:00",
        planner="mine[depth=2]",
        scheduler=None,
        executors=("simulate",),
        script_id=script_id,
        inputs=made,
        row=Row(**fields | row),
    )
