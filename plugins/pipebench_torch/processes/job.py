"""Files by which the processes of a run get their work, and leave their status and what they measured."""

import mmap
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.nodes import RunNode

LENGTH = 256


class Status:
    """The line of one process; writing it costs about a microsecond."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(b" " * LENGTH)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), LENGTH)

    def say(self, text: str) -> None:
        """Replace the line."""
        self._map[:LENGTH] = text.encode()[:LENGTH].ljust(LENGTH)


def read_status(path: Path) -> str:
    """The line; empty when there is none."""
    try:
        return path.read_bytes().decode(errors="replace").strip()
    except OSError:
        return ""


JOB, REPORT, ERROR, STATUS = "job.msgpack", "report-{}.msgpack", "error-{}.msgpack", "status-{}"
START, ENDED, OUTPUT, PIDS = "start.msgpack", "ended-{}.msgpack", "output-{}", "pids"
V = TypeVar("V", bound=Value)
GRACE_S = 3.0
"""How long the others may go on after one process failed: time to say why they stop."""


class Start(Value, frozen=True, kw_only=True):
    """What the agent of a node is told.

    command: of each process.
    deadline_s: of time.monotonic().
    parent: the process that started the agent.
    facts: what must be the same on all nodes.
    """

    node: RunNode
    command: tuple[str, ...]
    deadline_s: float
    parent: int
    facts: dict[str, str] = {}


class NodeEnding(Value, frozen=True, kw_only=True):
    """How the processes of a node ended.

    late: they met the time limit.
    codes: rank and exit code (negative: signal) of the processes that failed of themselves, in the order of
        failure.
    """

    well: bool = False
    late: bool = False
    codes: tuple[tuple[int, int], ...] = ()


class Job(Value, frozen=True, kw_only=True):
    """A plan with its problem and schedule, for one run.

    device, backend: as decided, never `auto`.
    end_s: when to give up, in seconds from the start of the process.
    data_bytes: most private memory of a process beyond what it starts with (0: no limit).
    verify: compare with a single process.
    chain: the stages in order where torch.distributed.pipelining runs them, else empty.
    captured: the model to build; empty: operators of known kinds.
    cores: of each process of this node, by its number there; empty: any.
    """

    planned: PlannedProblem
    options: ExecutorOptions
    device: str
    backend: str
    end_s: float
    data_bytes: tuple[int, ...] = ()
    verify: bool = False
    chain: tuple[int, ...] = ()
    captured: str = ""
    seed: int = 0
    cores: tuple[tuple[int, ...], ...] = ()


class TaskTimes(Value, frozen=True, kw_only=True):
    """One run of one process, in ns of the monotonic clock.

    begun, ended: the whole run.
    begin, end: tasks in the order of the lane.
    sent, got: messages by tag.
    """

    begun: int
    ended: int
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sent: dict[int, int]
    got: dict[int, int]


class Difference(Value, frozen=True, kw_only=True):
    """Gradients compared with those of a single process.

    parameters: how many were compared.
    exact: how many are equal bit by bit.
    worst: the largest difference, relative to the largest gradient of its parameter.
    name: the parameter with the largest difference.
    kind: what it was compared with.
    numbers: the number format of the computation.
    rounding: the distance from 1 to the next number.
    """

    parameters: int
    exact: int
    worst: float
    name: str = ""
    kind: str = ""
    numbers: str = ""
    rounding: float = 0.0


class ProcessReport(Value, frozen=True, kw_only=True):
    """What one process measured.

    memory: bytes during and after each task, above those at the start.
    clock_error_ns: largest error of its instants against those of rank 0.
    """

    rank: int
    runs: tuple[TaskTimes, ...]
    memory: tuple[tuple[int, int], ...]
    held_bytes: int
    delay: int = 0
    rounds: int = 1
    clock_error_ns: int = 0
    difference: Difference | None = None
    device: str = ""


class Failure(Value, frozen=True, kw_only=True):
    """Why a process gave up.

    kind: `memory`, `unsupported`, `port`, `peer` (another process is gone) or `other`.
    """

    kind: str
    message: str
    doing: str = ""


def write(path: Path, value: Value) -> None:
    """Write a value in one step, so that no reader sees half of it."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.msgpack.encode(value))
    draft.rename(path)


def give_up(folder: Path, rank: int, failure: Failure) -> None:
    """Write down why this process gives up.

    A process that only lost another one waits, so that the other is the first to end.
    """
    write(folder / ERROR.format(rank), failure)
    if failure.kind == "peer":
        time.sleep(GRACE_S)


def read_report(folder: Path, rank: int, kind: type[V]) -> V:
    """What a process measured. Raises PipebenchError where it left nothing."""
    try:
        content = (folder / REPORT.format(rank)).read_bytes()
    except FileNotFoundError:
        raise PipebenchError(f"rank {rank} left no report: its node was gone before it could be read") from None
    return msgspec.msgpack.decode(content, type=kind)


def read_failure(folder: Path, rank: int | str) -> Failure | None:
    """Why a process (or `node-N`, a node) gave up; None when it did not say."""
    path = folder / ERROR.format(rank)
    return msgspec.msgpack.decode(path.read_bytes(), type=Failure) if path.exists() else None


def read_ended(path: Path) -> NodeEnding | None:
    """How a node ended, None when all went well or it did not say."""
    return msgspec.msgpack.decode(path.read_bytes(), type=NodeEnding) if path.exists() else None
