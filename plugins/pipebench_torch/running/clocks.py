"""How far the monotonic clock of each node is from that of rank 0, and how that changes while a plan runs."""

import os
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from pipebench_torch.processes.job import TaskTimes

ROUNDS = 30


@dataclass(frozen=True, slots=True)
class ClockComparison:
    """The clock of rank 0 at an instant of this clock.

    offset_ns: to add to this clock.
    error_ns: the largest error of the offset.
    """

    at_ns: int
    offset_ns: int
    error_ns: int


class Clocks:
    """Compares this process's clock with that of rank 0; all processes do so together."""

    def __init__(self, backend: str) -> None:
        self._here = int(os.environ.get("GROUP_RANK", "0")) == 0  # node 0 has one clock
        self._apart = int(os.environ.get("GROUP_WORLD_SIZE", "1")) > 1
        self._group = dist.new_group(backend="gloo") if self._apart and backend != "gloo" else None

    def compare(self) -> ClockComparison:
        """Compare by the shortest of some round trips; each way takes an unknown part of it.

        Source: Cristian, Probabilistic clock synchronization, Distributed Computing 3, 1989.
        """
        found = ClockComparison(time.monotonic_ns(), 0, 0)
        if not self._apart:
            return found
        if dist.get_rank() == 0:
            for other in range(int(os.environ["LOCAL_WORLD_SIZE"]), dist.get_world_size()):
                _answer(other, self._group)
        elif not self._here:
            found = min((_ask(self._group) for _ in range(ROUNDS)), key=lambda one: one.error_ns)
        dist.barrier()
        return found


def _ask(group: Any) -> ClockComparison:
    theirs = torch.zeros(1, dtype=torch.int64)
    start = time.monotonic_ns()
    dist.send(theirs, dst=0, group=group)
    dist.recv(theirs, src=0, group=group)
    end = time.monotonic_ns()
    middle = (start + end) // 2
    return ClockComparison(middle, int(theirs) - middle, (end - start + 1) // 2)


def _answer(other: int, group: Any) -> None:
    asked = torch.zeros(1, dtype=torch.int64)
    for _ in range(ROUNDS):
        dist.recv(asked, src=other, group=group)
        dist.send(torch.tensor([time.monotonic_ns()]), dst=other, group=group)


def by_rank_0(tasks: TaskTimes, before: ClockComparison, after: ClockComparison) -> TaskTimes:
    """A run by the clock of rank 0, from comparisons before and after it.

    Two clocks drift apart by up to some 100 ppm (a millisecond in ten seconds), evenly for so long. Where the two
    comparisons differ by less than their errors, the better one holds for the whole run.
    """
    passed = max(1, after.at_ns - before.at_ns)
    gained = after.offset_ns - before.offset_ns
    if abs(gained) <= before.error_ns + after.error_ns:
        before, gained = min(before, after, key=lambda one: one.error_ns), 0

    def instant(own_ns: int) -> int:
        return own_ns + before.offset_ns + round(gained * (own_ns - before.at_ns) / passed)

    return TaskTimes(
        begun=instant(tasks.begun),
        ended=instant(tasks.ended),
        begin=tuple(instant(own) for own in tasks.begin),
        end=tuple(instant(own) for own in tasks.end),
        sent={tag: instant(own) for tag, own in tasks.sent.items()},
        got={tag: instant(own) for tag, own in tasks.got.items()},
    )
