"""How far the monotonic clock of each node is from that of node 0."""

import os
import time
from typing import Any

import torch
import torch.distributed as dist

ROUNDS = 30


def clock_offset(backend: str) -> tuple[int, int]:
    """ns to add to this process's clock to get that of rank 0, and by how much that may be wrong: half of the
    shortest round trip, of which each way takes an unknown part (Cristian, Probabilistic clock synchronization,
    Distributed Computing 3, 1989). (0, 0) on one node, where all processes have the same clock.
    """
    if int(os.environ.get("GROUP_WORLD_SIZE", "1")) == 1:
        return 0, 0
    group = dist.new_group(backend="gloo") if backend != "gloo" else None
    found = (0, 0)
    for other in range(1, dist.get_world_size()):
        if dist.get_rank() == 0:
            _answer(other, group)
        elif dist.get_rank() == other:
            found = _ask(group)
    dist.barrier()
    return found


def _ask(group: Any) -> tuple[int, int]:
    best = (0, 2**62)
    for _ in range(ROUNDS):
        theirs = torch.zeros(1, dtype=torch.int64)
        start = time.monotonic_ns()
        dist.send(theirs, dst=0, group=group)
        dist.recv(theirs, src=0, group=group)
        end = time.monotonic_ns()
        error = (end - start + 1) // 2
        if error < best[1]:
            best = (int(theirs) - (start + end) // 2, error)
    return best


def _answer(other: int, group: Any) -> None:
    asked = torch.zeros(1, dtype=torch.int64)
    for _ in range(ROUNDS):
        dist.recv(asked, src=other, group=group)
        dist.send(torch.tensor([time.monotonic_ns()]), dst=other, group=group)
