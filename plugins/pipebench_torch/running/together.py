"""What all processes of a run agree on while it goes on: a number, the instant at which a mini-batch begins."""

import time

import torch
import torch.distributed as dist

from pipebench_torch.machine import Machine

LEAD_NS = 10_000_000
"""From the word to the start: longer than processes take to hear of it."""


def told(value: int, machine: Machine) -> int:
    """The value of rank 0, in every process."""
    where = torch.device("cpu") if machine.staged else machine.device
    box = torch.tensor([value], dtype=torch.int64, device=where)
    dist.broadcast(box, src=0)
    return int(box.item())


def start_together(machine: Machine, offset_ns: int) -> None:
    """Return at one instant in all processes, which leave a barrier milliseconds apart: whoever left it late would
    seem to compute slowly. The processor is kept awake meanwhile. offset_ns: from this clock to that of rank 0.
    """
    dist.barrier()
    instant = told(time.monotonic_ns() + offset_ns + LEAD_NS, machine)
    while time.monotonic_ns() + offset_ns < instant:
        pass
