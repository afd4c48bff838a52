"""One process of a link measurement: `python -m pipebench_torch.profiling.link_worker FOLDER`."""

import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from pipebench_torch.machine import Machine, machine_of
from pipebench_torch.processes.job import JOB, REPORT, STATUS, write
from pipebench_torch.processes.leave import leave
from pipebench_torch.processes.status import Status
from pipebench_torch.profiling.link_levels import LinkReport
from pipebench_torch.profiling.link_pairs import Pair, pairs_abreast, pairs_between, pairs_within
from pipebench_torch.profiling.links import LinkJob

WARMUP, FEWEST, ABREAST = 2, 3, 8
ENOUGH_S = 0.7
"""Round trips of one size are repeated for so long, if not so often as the job says."""


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
    wire = Wire(job, dist.get_rank(), machine, status)
    within = tuple(wire.alone(pair) for pair in pairs_within(job.processes))
    between = tuple(wire.alone(pair) for pair in pairs_between(job.processes))
    together = wire.abreast(pairs_abreast(job.processes))
    devices = gathered((machine.name(), job.memory_bytes))
    dist.barrier()
    if rank == 0:
        report = LinkReport(
            within=within,
            between=between,
            together=together,
            names=tuple(name for name, _ in devices),
            memory_bytes=tuple(held for _, held in devices),
        )
        write(folder / REPORT.format(0), report)
    dist.destroy_process_group()
    return 0


def gathered(own: Any) -> list[Any]:
    """What every rank says, in every rank."""
    import torch.distributed as dist

    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, own)
    return found


class Wire:
    """Sends there and back."""

    def __init__(self, job: LinkJob, rank: int, machine: Machine, status: Status) -> None:
        self.job, self.rank, self.machine, self.status = job, rank, machine, status

    def alone(self, pair: Pair) -> tuple[float, ...]:
        """Seconds one way by size, while the others wait."""
        self.status.say(f"measuring ranks {pair[0]} and {pair[1]}")
        own = [self._one_way(pair, size) for size in self.job.sizes] if self.rank in pair else []
        return tuple(gathered(own)[pair[0]])

    def abreast(self, pairs: Sequence[Pair]) -> float:
        """Bytes/s that all of them send one way at once, in messages of the largest size; 0 without pairs."""
        if not pairs:
            return 0.0
        self.status.say(f"measuring {len(pairs)} pairs at once")
        own = next((pair for pair in pairs if self.rank in pair), None)
        gathered(None)  # all begin together
        took = gathered(own and self._stream(own))
        return float(sum(ABREAST * self.job.sizes[-1] / took[first] for first, _ in pairs))

    def _stream(self, pair: Pair) -> float:
        """Seconds until the second of a pair says that it has all messages of the first."""
        import torch

        buffer = torch.zeros(self.job.sizes[-1] // 4, device=self.machine.device)
        start = time.perf_counter()
        for _ in range(ABREAST):
            if self.rank == pair[0]:
                self._send(buffer, pair[1])
            else:
                self._receive(buffer, pair[0])
        self._told(0, (pair[1], pair[0]))
        return time.perf_counter() - start

    def _one_way(self, pair: Pair, size: int) -> float:
        """Half of the median round trip."""
        import torch

        buffer = torch.zeros(size // 4, device=self.machine.device)
        first = [self._round_trip(buffer, pair) for _ in range(WARMUP)][-1]
        wanted = max(FEWEST, min(self.job.repeats, int(ENOUGH_S / max(first, 1e-9))))
        count = self._told(wanted, pair)
        return float(median(self._round_trip(buffer, pair) for _ in range(count))) / 2

    def _told(self, value: int, pair: Pair) -> int:
        """The value of the first of a pair, in both."""
        import torch

        box = torch.tensor([value], device=self.machine.device)
        if self.rank == pair[0]:
            self._send(box, pair[1])
        else:
            self._receive(box, pair[0])
        return int(box.item())

    def _round_trip(self, buffer: Any, pair: Pair) -> float:
        """Seconds from the first send to the answer."""
        self.machine.settle()
        start = time.perf_counter()
        if self.rank == pair[0]:
            self._send(buffer, pair[1])
            self._receive(buffer, pair[1])
        else:
            self._receive(buffer, pair[0])
            self._send(buffer, pair[0])
        self.machine.settle()
        return time.perf_counter() - start

    def _send(self, buffer: Any, target: int) -> None:
        import torch.distributed as dist

        dist.send(self.machine.sending(buffer), dst=target)

    def _receive(self, buffer: Any, source: int) -> None:
        """Into the buffer, or into host memory first."""
        import torch.distributed as dist

        through_host = self.machine.staged and self.machine.device.type != "cpu"
        room = buffer.new_empty(buffer.shape, device="cpu") if through_host else buffer
        dist.recv(room, src=source)
        if room is not buffer:
            buffer.copy_(room)


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
