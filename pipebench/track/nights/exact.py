"""The columns of a row that do not depend on the machine, and what a change of them means."""

from collections.abc import Iterable, Mapping
from typing import Literal

from pipebench.bench.standings.cells import nanoseconds
from pipebench.domain.row import FAILED, Row
from pipebench.track.nights.night import Exact

Outcome = Literal["worse", "better", "changed"]
TEXTS = ("status", "reason", "scheduler", "verdict", "fit", "termination")
TIMES = ("simulated", "estimated", "claimed", "bound", "class_bound")
BYTES = ("memory_bytes", "smallest_memory_bytes", "bound_memory_bytes")
PLAN, SCHEDULE, WORK = "plan", "schedule", "work."
VALUES = ("simulated_ns", "estimated_ns")
"""What a plan is compared by: the first that both nights have."""


def exact_columns(row: Row) -> dict[str, Exact]:
    """The columns, times in whole ns; counters as work.<name>.

    The reason of a row is exact where it follows from the problem, and no column where the machine has a part in
    it (a timeout, a crash): then the night keeps it beside the columns.
    """
    found: dict[str, Exact] = {name: getattr(row, name) for name in TEXTS}
    if row.status in FAILED:
        found["reason"] = ""
    for name in TIMES:
        seconds = getattr(row, f"{name}_s")
        found[f"{name}_ns"] = None if seconds is None else nanoseconds(seconds)
    found |= {name: getattr(row, name) for name in BYTES}
    found |= {"stages": row.stages, PLAN: row.plan_id, SCHEDULE: row.schedule_id}
    found |= {f"{WORK}{name}": count for name, count in sorted(row.counters.items())}
    return found


def changed_columns(before: Mapping[str, Exact], after: Mapping[str, Exact], but: Iterable[str] = ()) -> list[str]:
    """The names of the columns that differ, in order; a column that one lacks is None there."""
    names = dict.fromkeys((*before, *after))
    return [name for name in names if name not in set(but) and before.get(name) != after.get(name)]


def outcome(before: Mapping[str, Exact], after: Mapping[str, Exact], names: Iterable[str]) -> Outcome:
    """Of the changed columns: worse where the plan is, or the work grew, whatever else became better."""
    changed = list(names)
    found = [*_quality(before, after, changed), *_work(before, after, changed)]
    if "worse" in found:
        return "worse"
    return "better" if "better" in found else "changed"


def _quality(before: Mapping[str, Exact], after: Mapping[str, Exact], names: list[str]) -> Iterable[Outcome]:
    """By status, then by time, then by memory: the first that differs decides."""
    solved = before.get("status") == "ok", after.get("status") == "ok"
    if solved[0] != solved[1]:
        yield "better" if solved[1] else "worse"
        return
    for column in (_value_of(before, after), "memory_bytes"):
        old, new = before.get(column), after.get(column)
        if column in names and isinstance(old, int | float) and isinstance(new, int | float):
            yield "worse" if new > old else "better"
            return


def _value_of(before: Mapping[str, Exact], after: Mapping[str, Exact]) -> str:
    both = (name for name in VALUES if before.get(name) is not None and after.get(name) is not None)
    return next(both, VALUES[0])


def _work(before: Mapping[str, Exact], after: Mapping[str, Exact], names: list[str]) -> Iterable[Outcome]:
    """Each counter that both nights have; a new or a gone one is a change and no more."""
    for name in names:
        old, new = before.get(name), after.get(name)
        if name.startswith(WORK) and isinstance(old, int | float) and isinstance(new, int | float):
            yield "worse" if new > old else "better"
