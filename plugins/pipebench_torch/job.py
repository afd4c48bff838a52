"""What the processes of a run are told, and what each reports: files in one folder."""

from pathlib import Path

import msgspec

from pipebench.domain.document import PlannedProblem
from pipebench.domain.value import Value
from pipebench_torch.plugin import ExecutorOptions

JOB, REPORT, ERROR, STATUS = "job.msgpack", "report-{}.msgpack", "error-{}.msgpack", "status-{}"


class Job(Value, frozen=True, kw_only=True):
    """A plan with its problem and schedule. device, backend: decided, never `auto`. end_s: when to give up, in
    seconds from the start of the process. data_bytes: most private memory of a process beyond what it starts with
    (0: no limit). verify: compare with a single process.
    """

    planned: PlannedProblem
    options: ExecutorOptions
    device: str
    backend: str
    end_s: float
    data_bytes: tuple[int, ...] = ()
    verify: bool = False
    seed: int = 0


class Tasks(Value, frozen=True, kw_only=True):
    """One run of one process, ns of the monotonic clock; tasks in the order of the lane. sent, got: by tag."""

    begun: int
    ended: int
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sent: dict[int, int]
    got: dict[int, int]


class Difference(Value, frozen=True, kw_only=True):
    """Gradients against those of a single process. exact: parameters equal bit by bit. worst: the largest
    difference, relative to the largest gradient of its parameter. kind: what it was compared with.
    """

    parameters: int
    exact: int
    worst: float
    name: str = ""
    kind: str = ""


class Report(Value, frozen=True, kw_only=True):
    """What one process measured. memory: bytes during and after each task, above those at the start."""

    rank: int
    runs: tuple[Tasks, ...]
    memory: tuple[tuple[int, int], ...]
    held_bytes: int
    delay: int = 0
    rounds: int = 1
    difference: Difference | None = None
    device: str = ""


class Failure(Value, frozen=True, kw_only=True):
    """Why a process gave up. kind: `memory`, `unsupported`, `port`, `peer` (another one is gone) or `other`."""

    kind: str
    message: str
    doing: str = ""


def write(path: Path, value: Value) -> None:
    """Write a value so that a reader never sees half of it."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.msgpack.encode(value))
    draft.rename(path)


def read_failure(folder: Path, rank: int) -> Failure | None:
    """Why a process gave up, None when it did not say."""
    path = folder / ERROR.format(rank)
    return msgspec.msgpack.decode(path.read_bytes(), type=Failure) if path.exists() else None
