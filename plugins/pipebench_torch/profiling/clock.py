"""Instants of work: of this thread on a CPU, whatever else the machine does; events on a card."""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch


class Clock:
    """Marks are cheap and are read once the work is done, so that a card is never waited for in between."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cuda = device.type == "cuda"

    def mark(self) -> Any:
        """This instant."""
        if not self.cuda:
            return time.thread_time()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, marks: Sequence[Any]) -> list[float]:
        """Seconds between each mark and the next."""
        if not self.cuda:
            return [later - earlier for earlier, later in pairwise(marks)]
        torch.cuda.synchronize()
        return [earlier.elapsed_time(later) / 1e3 for earlier, later in pairwise(marks)]
