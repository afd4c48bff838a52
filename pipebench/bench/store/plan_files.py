"""The folder of plan files that `compare --out` writes, looked through by hash."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pipebench.domain.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import digest
from pipebench.formats.native import read_plan

T = TypeVar("T")


class PlanFiles:
    """Each file holds a plan with its problem and its schedule. Read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def problem(self, identity: str) -> Problem:
        """The problem of that problem_id. Raises PipebenchError when no file holds it."""
        return self._find("problem", identity, self._problems)

    def plan(self, identity: str) -> Plan:
        """The plan of that plan_id. Raises PipebenchError when no file holds it."""
        return self._find("plan", identity, self._plans)

    def schedule(self, identity: str) -> Schedule:
        """The schedule of that schedule_id. Raises PipebenchError when no file holds it."""
        return self._find("schedule", identity, self._schedules)

    @cached_property
    def _planned(self) -> list[PlannedProblem]:
        return [read_plan(file) for file in sorted(self.folder.glob("*.json"))]

    @cached_property
    def _problems(self) -> dict[str, Problem]:
        return {planned.problem.problem_id: planned.problem for planned in self._planned}

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return {digest(planned.plan): planned.plan for planned in self._planned}

    @cached_property
    def _schedules(self) -> dict[str, Schedule]:
        found = (planned.schedule for planned in self._planned)
        return {digest(schedule): schedule for schedule in found if schedule is not None}

    def _find(self, what: str, identity: str, known: Mapping[str, T]) -> T:
        if identity not in known:
            raise PipebenchError(f"{str(self.folder)!r} has no {what} {identity[:16]}")
        return known[identity]
