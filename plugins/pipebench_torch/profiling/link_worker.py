"""One process of a link measurement: `python -m pipebench_torch.profiling.link_worker FOLDER`."""

import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

from pipebench_torch.machine import machine_of
from pipebench_torch.processes.cores import keep_to, start_patient_threads
from pipebench_torch.processes.job import JOB, REPORT, Status, write
from pipebench_torch.processes.work import do_work, leave
from pipebench_torch.profiling.links import LinkJob, LinkReport
from pipebench_torch.profiling.wire import Wire, pairs_abreast, pairs_between, pairs_within


def main(folder: Path) -> int:
    """Answer and send; rank 0 writes the report."""
    return do_work(folder, partial(_measure, folder))


def _measure(folder: Path, rank: int, local: int, status: Status) -> None:
    import torch
    import torch.distributed as dist

    job = msgspec.msgpack.decode((folder / JOB).read_bytes(), type=LinkJob)
    if job.cores:
        keep_to(job.cores[local])
    if job.backend == "gloo":
        start_patient_threads()
    torch.set_num_threads(1)
    machine = machine_of(job.device, job.backend, local)
    status.say("meeting the other ranks")
    more = {"device_id": machine.device} if job.backend == "nccl" else {}
    dist.init_process_group(job.backend, timeout=timedelta(seconds=max(job.end_s, 1.0)), **more)
    wire = Wire(job.sizes, rank, machine, status)
    within = tuple(wire.alone(pair) for pair in pairs_within(job.processes))
    between = tuple(wire.alone(pair) for pair in pairs_between(job.processes))
    together = wire.abreast(pairs_abreast(job.processes))
    devices = wire.gather((machine.name(), job.memory_bytes, job.sharing), "all ranks")
    if rank == 0:
        names, memory_bytes, sharing = zip(*devices, strict=True)
        report = LinkReport(
            within=within,
            between=between,
            together=together,
            names=names,
            memory_bytes=memory_bytes,
            source=_source(job, max(sharing)),
        )
        write(folder / REPORT.format(0), report)
    status.say("waiting for the other ranks to end")
    dist.barrier()
    dist.destroy_process_group()


def _source(job: LinkJob, sharing: int) -> str:
    shared = f", {sharing} processes on a card" if job.device == "cuda" and sharing > 1 else ""
    day = datetime.now(UTC).date().isoformat()
    return f"measured over {job.backend}{shared}, torch {version('torch')}, {day}"


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
