"""StoredRow: a row with all that is needed to run its trial again."""

from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from msgspec.json import encode
from msgspec.structs import force_setattr, replace

from pipebench.bench.store.keys import TrialInputs, trial_key
from pipebench.domain.errors import InvalidValue
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row, require_possible
from pipebench.domain.value import Value
from pipebench.formats.files import read_file
from pipebench.hooks.syntax import parse_reference

if TYPE_CHECKING:
    from pipebench.bench.problems.workload import Workload
    from pipebench.bench.trials.trial import Trial


PlannerKind = Literal["plugin", "script", "program", "plan"]


class StoredRow(Value, frozen=True, kw_only=True):
    """One line of a store: a row with all that is needed to run its trial again.

    key: hash of the inputs.
    planner, scheduler, executors: as on the command line, options included. planner is that of the row, and so is
    scheduler where one was named: what is shown is what runs again.
    scheduler: None where the user named none.
    finished_at: UTC, ISO 8601.
    script_id: SHA-256 of the planner's file, where the planner is a file and the store keeps its text.
    inputs: also hold seed, repetitions and limits.
    position: of the trial among those of the command that ran it; trials are run in another order.
    """

    key: str
    finished_at: str
    planner: str
    planner_kind: PlannerKind = "plugin"
    scheduler: str | None = None
    executors: tuple[str, ...] = ()
    script_id: str | None = None
    inputs: TrialInputs
    position: int = 0
    row: Row

    def __post_init__(self) -> None:
        shown = self.row
        if shown.planner != self.planner:
            raise InvalidValue(f"it shows the planner {shown.planner!r} and would run {self.planner!r}")
        if self.scheduler not in (None, shown.scheduler):
            raise InvalidValue(f"it shows the scheduler {shown.scheduler!r} and would run {self.scheduler!r}")


def require_possible_row(stored: StoredRow) -> None:
    """Raises InvalidValue for a line whose row no run can have."""
    require_possible(stored.row)


_SHARED_ROW = (
    "workload",
    "problem_id",
    "workload_id",
    "cut_id",
    "plan_id",
    "schedule_id",
    "reason",
    "notices",
    "micro_batch",
    "replicas",
    "in_flight",
)
_SHARED_VALUES = attrgetter(*_SHARED_ROW)
"""The fields of a row with the most bytes; to look up the short ones takes longer than it is worth."""


class SharedParts:
    """Makes equal parts of many rows one object: hashes, versions and machines of a row are in others too.

    Of 100,000 rows it leaves a third of the memory.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def share(self, stored: StoredRow) -> None:
        """Put what was there before in the place of equal texts, lists and mappings of the row and its inputs."""
        known, row, inputs = self._known, stored.row, stored.inputs
        for name, value in zip(_SHARED_ROW, _SHARED_VALUES(row), strict=True):
            if value and (shared := known.setdefault(value, value)) is not value:
                force_setattr(row, name, shared)
        for owner, name in (
            (row, "environment"),
            (row, "peak_memory_bytes"),
            (inputs, "called"),
            (inputs, "versions"),
        ):
            value = getattr(owner, name)
            if value:
                shared = known.setdefault((name, *value.values()), value)
                if shared == value:
                    force_setattr(owner, name, shared)
        for name in ("planner", "executors"):
            value = getattr(inputs, name)
            force_setattr(inputs, name, known.setdefault(encode(value), value))
        force_setattr(inputs, "host", known.setdefault(inputs.host, inputs.host))
        if inputs.problem_id == row.problem_id:
            force_setattr(inputs, "problem_id", row.problem_id)
        if row.key == stored.key:
            force_setattr(row, "key", stored.key)
        force_setattr(stored, "planner", row.planner)  # equal: the row was refused otherwise
        force_setattr(stored, "executors", known.setdefault(stored.executors, stored.executors))


def stored_row(trial: "Trial", inputs: TrialInputs, row: Row, position: int) -> StoredRow:
    """The line of a trial that has just finished; the row gets its key. position: see StoredRow."""
    key = trial_key(inputs)
    return StoredRow(
        key=key,
        finished_at=now(),
        planner=trial.planner.label,
        planner_kind=planner_kind(trial),
        scheduler=trial.scheduler,
        executors=trial.executors,
        inputs=inputs,
        position=position,
        row=replace(row, key=key),
    )


def planner_kind(trial: "Trial") -> PlannerKind:
    """Where the planner of a trial comes from: a plugin, a Python file, a program or a finished plan."""
    if trial.planner.component.load:
        return "plugin"
    reference = parse_reference(trial.planner.label)
    if reference.is_program:
        return "program"
    return "script" if reference.is_script else "plan"


def script_text(trial: "Trial") -> bytes | None:
    """The text of the planner's file, for the store to keep; None where the planner is none.

    Raises PipebenchError when it cannot be read.
    """
    is_script = planner_kind(trial) == "script"
    return read_file(parse_reference(trial.planner.label).name) if is_script else None


def workload_of(row: Row, problem: Problem) -> "Workload":
    """The workload of a stored row, from the problem that it was scored on: to run the trial again."""
    from pipebench.bench.problems.workload import Workload

    return Workload(row.model, problem)


def now() -> str:
    """This moment in UTC, ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
