"""The times of a search: wall, CPU, and how long kernels took to compile."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of CPU and of wall time."""

    cpu_s: float
    wall_s: float

    def __add__(self, other: "Duration") -> "Duration":
        return Duration(self.cpu_s + other.cpu_s, self.wall_s + other.wall_s)


def measure_duration(work: Callable[[], T]) -> tuple[T, Duration]:
    """Run the work and say how long it took."""
    wall, cpu = time.perf_counter(), _cpu_s()
    result = work()
    return result, Duration(_cpu_s() - cpu, time.perf_counter() - wall)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class CompilationWatch:
    """Counts seconds spent in numba's compiler between `__enter__` and `__exit__`, nested calls once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Wall seconds during which at least one kernel was being compiled."""
        self.cpu_seconds = 0.0
        """CPU seconds of this process meanwhile: fewer where others use the machine."""
        self._depth = 0
        self._began = 0.0, 0.0

    @property
    def running(self) -> bool:
        """Whether a kernel is being compiled at this moment."""
        return self._depth > 0

    def __enter__(self) -> "CompilationWatch":
        from numba.core import event

        watch = self

        class Listener(event.Listener):
            def on_start(self, _event: Any) -> None:
                watch._start()

            def on_end(self, _event: Any) -> None:
                watch._end()

        self._event: Any = event
        self._listener: Any = Listener()
        self._event.register("numba:compile", self._listener)
        return self

    def __exit__(self, *error: object) -> None:
        self._event.unregister("numba:compile", self._listener)

    def _start(self) -> None:
        if self._depth == 0:
            self._began = time.perf_counter(), time.process_time()
        self._depth += 1

    def _end(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began[0]
            self.cpu_seconds += time.process_time() - self._began[1]
