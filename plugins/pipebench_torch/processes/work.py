"""The work of one process: its memory limit, what it does, how it ends and why it gives up."""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench_torch.processes.job import STATUS, Failure, Status, give_up, read_status

MARGIN_BYTES = 64 * 2**20


def limit_data(more_bytes: int) -> None:
    """Allow so many bytes of private memory beyond those in use now; allocations beyond fail.

    The kernel counts private writable mappings, which grow with tensors and not with shared libraries.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:  # no such file outside Linux
        return
    limit = pages * resource.getpagesize() + more_bytes + MARGIN_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def leave(code: int) -> NoReturn:
    """End this process at once.

    A thread of the backend may want the interpreter while that shuts down. It then aborts the process (`terminate
    called without an active exception`), though all work is done.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


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
    """Do the work of this rank and return the exit code.

    The work is called with its rank, its number on this node and its status.
    """
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
