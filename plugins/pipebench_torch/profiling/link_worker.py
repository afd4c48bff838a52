"""One process of a link measurement: `python -m pipebench_torch.profiling.link_worker FOLDER`."""

import os
import sys
import time
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from pipebench_torch.machine import Machine, machine_of
from pipebench_torch.processes.job import JOB, REPORT, STATUS, write
from pipebench_torch.processes.leave import leave
from pipebench_torch.processes.status import Status
from pipebench_torch.profiling.links import LinkJob, LinkReport


def main(folder: Path) -> int:
    """Answer and send; rank 0 writes the report."""
    import torch
    import torch.distributed as dist

    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    status = Status(folder / STATUS.format(rank))
    job = msgspec.msgpack.decode((folder / JOB).read_bytes(), type=LinkJob)
    torch.set_num_threads(1)
    machine = machine_of(job.device, job.backend, local)
    status.say("meeting the other ranks")
    more = {"device_id": machine.device} if job.backend == "nccl" else {}
    dist.init_process_group(job.backend, timeout=timedelta(seconds=job.end_s), **more)
    found: dict[str, tuple[float, ...]] = {}
    for one, other in combinations(range(dist.get_world_size()), 2):
        status.say(f"measuring ranks {one} and {other}")
        times: list[float] = []
        for size in job.sizes:
            buffer = torch.zeros(size // 4, device=machine.device)
            rounds = [_round_trip(dist, buffer, rank, one, other, machine) for _ in range(job.repeats + 2)][2:]
            times.append(median(rounds) / 2)
        got = [tuple(times)]
        dist.broadcast_object_list(got, src=one)
        found[f"{one}-{other}"] = got[0]
    dist.barrier()
    if rank == 0:
        write(folder / REPORT.format(0), LinkReport(device=machine.name(), seconds=found))
    dist.destroy_process_group()
    return 0


def _round_trip(dist: Any, buffer: Any, rank: int, one: int, other: int, machine: Machine) -> float:
    """Seconds from the first send to the answer; ranks that do not take part do nothing."""
    machine.settle()
    start = time.perf_counter()
    if rank == one:
        _send(dist, buffer, other, machine)
        _receive(dist, buffer, other, machine)
    elif rank == other:
        _receive(dist, buffer, one, machine)
        _send(dist, buffer, one, machine)
    machine.settle()
    return time.perf_counter() - start


def _send(dist: Any, buffer: Any, target: int, machine: Machine) -> None:
    dist.send(machine.sending(buffer), dst=target)


def _receive(dist: Any, buffer: Any, source: int, machine: Machine) -> None:
    """Into the buffer, or into host memory first."""
    through_host = machine.staged and machine.device.type != "cpu"
    room = buffer.new_empty(buffer.shape, device="cpu") if through_host else buffer
    dist.recv(room, src=source)
    if room is not buffer:
        buffer.copy_(room)


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
