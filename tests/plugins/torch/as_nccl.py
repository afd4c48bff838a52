"""A worker that takes gloo for NCCL and host memory for cards: `python as_nccl.py FOLDER [links]`.

It is `pipebench_torch.running.worker` but for what NCCL does otherwise than gloo: messages have no tags, so
that those of a channel must come in one order; two processes that exchange something for the first time wait
for each other; every message needs a group of its own two. The instants are those of events, read at the end. A
run over gloo, in which processes share a card, keeps gloo's ways.
"""

import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pipebench_torch.machine import CudaMachine
from pipebench_torch.profiling import link_worker
from pipebench_torch.running import exchange, session, worker

CARDS = 4
CONNECT_S = 20.0


class Event:
    """An instant of the only stream."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at_s = 0.0

    def record(self) -> None:
        self.at_s = time.monotonic()

    def synchronize(self) -> None:
        assert self.at_s

    def elapsed_time(self, later: "Event") -> float:
        return (later.at_s - self.at_s) * 1e3


class Card(CudaMachine):
    """Everything of a CUDA device but the device."""

    def __init__(self, index: int, staged: bool) -> None:
        super().__init__(index, staged)
        assert self.device == torch.device("cuda", index)
        self.device = torch.device("cpu")


def cards() -> None:
    """torch.cuda with four cards that do nothing."""
    held = {
        "device_count": lambda: CARDS,
        "set_device": lambda index: None,
        "synchronize": lambda: None,
        "memory_allocated": lambda: 10**6,
        "max_memory_allocated": lambda: 2 * 10**6,
        "reset_peak_memory_stats": lambda: None,
        "get_device_name": lambda device: "a made card",
        "Event": Event,
    }
    for name, value in held.items():
        setattr(torch.cuda, name, value)


class Wire:
    """torch.distributed with NCCL's ways. used: channels that are connected."""

    def __init__(self) -> None:
        self.used: set[tuple[int, int]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(dist, name)

    def isend(self, tensor: Any, dst: int, group: Any = None, **_: Any) -> Any:
        self.meet(dist.get_rank(), dst, group)
        return dist.isend(tensor, dst=dst, group=group)

    def irecv(self, tensor: Any, src: int, group: Any = None, **_: Any) -> Any:
        self.meet(src, dist.get_rank(), group)
        return dist.irecv(tensor, src=src, group=group)

    def send(self, tensor: Any, dst: int, group: Any = None, **_: Any) -> None:
        self.isend(tensor, dst, group).wait()

    def recv(self, tensor: Any, src: int, group: Any = None, **_: Any) -> None:
        self.irecv(tensor, src, group).wait()

    def meet(self, source: int, target: int, group: Any) -> None:
        """Return when both have come."""
        assert group is not None
        assert dist.get_process_group_ranks(group) == sorted((source, target))
        if (source, target) in self.used:
            return
        self.used.add((source, target))
        store, key = dist.distributed_c10d._get_default_store(), f"as-nccl-{source}-{target}"
        store.add(key, 1)
        until = time.monotonic() + CONNECT_S
        while store.add(key, 0) < 2:
            if time.monotonic() > until:
                raise RuntimeError(f"ranks {source} and {target} do not come together")
            time.sleep(0.001)


def main(folder: Path, links: bool) -> int:
    """Run the worker, or that of a link measurement."""
    cards()
    start = dist.init_process_group

    def as_gloo(backend: str, timeout: Any, device_id: Any = None) -> None:
        assert (device_id is None) == (backend == "gloo")
        if backend == "nccl":
            exchange.dist = Wire()
        start("gloo", timeout=timeout)

    dist.init_process_group = as_gloo
    session.machine_of = link_worker.machine_of = card
    return link_worker.main(folder) if links else worker.main(folder)


def card(device: str, backend: str, local: int) -> Card:
    """Of a process."""
    assert device == "cuda"
    return Card(local % CARDS, staged=backend == "gloo")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "links" in sys.argv))
