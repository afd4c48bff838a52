"""One process of a run: `python -m pipebench_torch.running.worker FOLDER`, in the environment of torchrun."""

import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pipebench_torch.processes.cores import keep_to, start_patient_threads
from pipebench_torch.processes.job import JOB, REPORT, Job, Status, write
from pipebench_torch.processes.work import do_work, leave


def main(folder: Path) -> int:
    """Run the part of this rank; the exit code is 0 when its report is written."""
    return do_work(folder, partial(_run, folder))


def _run(folder: Path, rank: int, local: int, status: Status) -> None:
    job = msgspec.msgpack.decode((folder / JOB).read_bytes(), type=Job)
    if job.cores:
        keep_to(job.cores[local])
    status.say("importing torch")
    import torch
    import torch.distributed as dist

    from pipebench_torch.processes.work import limit_data
    from pipebench_torch.running.session import run_session

    torch.set_num_threads(job.options.threads)
    if job.data_bytes:
        limit_data(job.data_bytes[rank])
    status.say("meeting the other ranks")
    if job.backend == "gloo":
        start_patient_threads()
    more: dict[str, Any] = {}
    if job.backend == "nccl":
        more["device_id"] = torch.device("cuda", local % torch.cuda.device_count())
    dist.init_process_group(job.backend, timeout=timedelta(seconds=max(job.end_s, 1.0)), **more)
    report = run_session(job, rank, local, status)
    write(folder / REPORT.format(rank), report)
    status.say("waiting for the other ranks to end")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
