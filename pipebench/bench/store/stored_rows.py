"""StoredRow: a row with all that is needed to run its trial again."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from pipebench.bench.store.keys import TrialInputs, trial_key
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row, require_possible
from pipebench.domain.value import Value, require
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
        require(
            shown.planner == self.planner,
            f"it shows the planner {shown.planner!r} and would run {self.planner!r}",
        )
        require(
            self.scheduler in (None, shown.scheduler),
            f"it shows the scheduler {shown.scheduler!r} and would run {self.scheduler!r}",
        )


def require_possible_row(stored: StoredRow) -> None:
    """Raises InvalidValue for a line whose row no run can have."""
    require_possible(stored.row)


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
