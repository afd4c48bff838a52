"""One process of a run: `python -m pipebench_torch.running.worker FOLDER`, in the environment of torchrun."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench_torch.processes.job import JOB, REPORT, STATUS, Failure, Job, give_up, write
from pipebench_torch.processes.leave import leave
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


def main(folder: Path) -> int:
    """Run the part of this rank; the exit code is 0 when its report is written."""
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    status = Status(folder / STATUS.format(rank))
    status.say("starting")
    job = msgspec.msgpack.decode((folder / JOB).read_bytes(), type=Job)
    try:
        _run(folder, job, rank, local, status)
    except BaseException as error:  # whatever it is, the one who started this wants to know
        doing = read_status(folder / STATUS.format(rank))
        give_up(folder, rank, Failure(kind=_kind(error), message=_text(error), doing=doing))
        if not isinstance(error, PipebenchError):
            raise
        return 1
    return 0


def _run(folder: Path, job: Job, rank: int, local: int, status: Status) -> None:
    status.say("importing torch")
    import torch
    import torch.distributed as dist

    from pipebench_torch.processes.limits import limit_data
    from pipebench_torch.running.session import run_session

    torch.set_num_threads(job.options.threads)
    if job.data_bytes:
        limit_data(job.data_bytes[rank])
    status.say("meeting the other ranks")
    more: dict[str, Any] = {}
    if job.backend == "nccl":
        more["device_id"] = torch.device("cuda", local % torch.cuda.device_count())
    dist.init_process_group(job.backend, timeout=timedelta(seconds=max(job.end_s, 1.0)), **more)
    report = run_session(job, rank, local, status)
    write(folder / REPORT.format(rank), report)
    status.say("waiting for the other ranks to end")
    dist.barrier()
    dist.destroy_process_group()


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


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
