"""Store: the journal of finished trials."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace as replace_fields

from pipebench.bench.store.access import storing
from pipebench.bench.store.journal import Journal, RecordKind
from pipebench.bench.store.keys import trial_key
from pipebench.bench.store.objects import PLAN, PROBLEM, SCHEDULE, SCRIPT, references, script_id
from pipebench.bench.store.stored_rows import SharedParts, StoredRow, require_possible_row
from pipebench.bench.store.sweep_parts import SweepPart, enter_shard
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import digest

ROWS = "rows.jsonl"
TRIALS = RecordKind("store", 1, "rows", ROWS, StoredRow, references, require_possible_row)


class Store(Journal[StoredRow]):
    """Rows of finished trials, and the problems, plans, schedules and scripts behind them."""

    kind = TRIALS

    def __init__(self, path: Path, writable: bool) -> None:
        super().__init__(path, writable)
        self._parts = SharedParts()

    def append(
        self,
        stored: StoredRow,
        problem: Problem,
        plan: Plan | None = None,
        schedule: Schedule | None = None,
        *,
        script: bytes | None = None,
        replace: bool = False,
    ) -> bool:
        """Keep a finished trial. Its objects and its line are on the disk when this returns True.

        Returns False and writes nothing when the key is there already (another process was faster), unless
        `replace`.
        script: the text of the planner's file.
        A row without plan_id and schedule_id gets those of the given plan and schedule.
        Raises PipebenchError when it cannot be written; the store is then unchanged.
        Raises ValueError when the row and its objects do not belong together.
        """
        stored = _complete(stored, problem, plan, schedule, script)
        with storing(self.path), self._lock():
            self._read()
            if stored.key in self._latest and not replace:
                return False
            values = {PROBLEM: problem, PLAN: plan, SCHEDULE: schedule, SCRIPT: script}
            named = ((kind, identity, values[kind]) for kind, identity in references(stored))
            self._write(stored, (each for each in named if each[2] is not None))
        return True

    def restore(self, problems: Iterable[Problem]) -> None:
        """Write those of the problems anew whose objects are damaged or missing; a notice names each.

        Raises PipebenchError when one cannot be written.
        """
        with storing(self.path), self._lock():
            for problem in problems:
                if self._folder.write(PROBLEM, problem.problem_id, problem):
                    named = f"problem {problem.problem_id[:16]}"
                    self.notices.append(f"{self.path}: {named} was damaged or missing, it is written anew")

    def enter_shard(self, part: SweepPart) -> None:
        """Say which shard of a sweep the store is for. Raises PipebenchError where it is another one's."""
        with storing(self.path), self._lock():
            enter_shard(self.path, part)

    def _take(self, record: StoredRow) -> None:
        self._parts.share(record)
        super()._take(record)


def _complete(
    stored: StoredRow, problem: Problem, plan: Plan | None, schedule: Schedule | None, script: bytes | None
) -> StoredRow:
    """The row with the hashes of its objects."""
    row = stored.row
    made: dict[str, str] = dict(_fitting("problem_id", row, problem.problem_id))
    if plan is not None:
        made |= _fitting("plan_id", row, digest(plan))
    if schedule is not None:
        made |= _fitting("schedule_id", row, digest(schedule))
    if stored.key != trial_key(stored.inputs) or row.key != stored.key:
        raise ValueError("the key of a row is not that of its inputs")
    script_hash = stored.script_id if script is None else script_id(script)
    return replace_fields(stored, script_id=script_hash, row=replace_fields(row, **made))


def _fitting(field: str, row: Row, identity: str) -> Iterator[tuple[str, str]]:
    if getattr(row, field) not in (None, identity):
        raise ValueError(f"{field} of a row is not that of the value with it")
    yield field, identity
