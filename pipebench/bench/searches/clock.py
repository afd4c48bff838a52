"""Clocks of one search: wall, and CPU of this process and of the children that it waited for."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of CPU and of wall time."""

    cpu_s: float
    wall_s: float

    def __add__(self, other: "Duration") -> "Duration":
        return Duration(self.cpu_s + other.cpu_s, self.wall_s + other.wall_s)


def timed(work: Callable[[], T]) -> tuple[T, Duration]:
    """Run the work and say how long it took."""
    wall, cpu = time.perf_counter(), _cpu_s()
    result = work()
    return result, Duration(_cpu_s() - cpu, time.perf_counter() - wall)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
