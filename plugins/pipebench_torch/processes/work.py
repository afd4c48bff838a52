"""The work of one process: what it does, and why it gives up, for the one who started it."""

import os
from collections.abc import Callable
from pathlib import Path

from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench_torch.processes.job import STATUS, Failure, give_up
from pipebench_torch.processes.status import Status, read_status

PEER = (
    "closed by peer",
    "connection reset",
    "socket timeout",
    "broken pipe",
    "timed out",
    "connection was likely",
)
MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "alloc_cpu", "bad_alloc")


def do_work(folder: Path, work: Callable[[int, int, Status], None]) -> int:
    """Do the work of this rank, given as its rank, its number on this node and its status; the exit code."""
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    status = Status(folder / STATUS.format(rank))
    status.say("starting")
    try:
        work(rank, local, status)
    except BaseException as error:  # whatever it is, the one who started this wants to know
        doing = read_status(folder / STATUS.format(rank))
        give_up(folder, rank, Failure(kind=_kind(error), message=_text(error), doing=doing))
        if not isinstance(error, PipebenchError):
            raise
        return 1
    return 0


def _kind(error: BaseException) -> str:
    text = str(error).lower()
    if isinstance(error, MemoryError) or any(sign in text for sign in MEMORY):
        return "memory"
    if isinstance(error, UnsupportedProblem):
        return "unsupported"
    if "eaddrinuse" in text or "address already in use" in text:
        return "port"
    return "peer" if any(sign in text for sign in PEER) else "other"


def _text(error: BaseException) -> str:
    if isinstance(error, PipebenchError):
        return str(error)
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
