"""The witness of a child's CPU time: what the kernel counts for it and for all that descends from it."""

import ctypes
import os
import platform
import resource
import struct
import sys
import time
from typing import Any

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
"""The number of the system call by machine."""
SOFTWARE, TASK_CLOCK, INHERIT = 1, 1, 1 << 1
ATTRIBUTE_BYTES = 128
NS_PER_S = 1e9
END_S = 0.02
"""CPU seconds that a process may use to end; one that uses more is still at work."""


class ProcessClock:
    """CPU seconds of one child and its descendants.

    Where the kernel permits it, a counter that every descendant inherits, those that nobody waits for included;
    else what `wait4` says of processes that have ended. Make it before the child starts others.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._counter = _open_counter(process)
        self._began_s = 0.0
        self._read_s: float | None = None
        self._waited_s = 0.0

    def start(self) -> float:
        """What was used up to now, in CPU seconds; it is not counted."""
        self._began_s = self._counted_s() if self._counter is not None else _process_s(self._process)
        return self._began_s

    def read(self) -> None:
        """The child has sent what it found. What its end costs is not counted, unless that is more than END_S."""
        if self._counter is not None:
            self._read_s = self._counted_s()

    def add(self, usage: resource.struct_rusage) -> None:
        """What `wait4` said of the child, or of an orphan that it left."""
        self._waited_s += usage.ru_utime + usage.ru_stime

    def stop(self) -> float:
        """CPU seconds since the start, when all have ended and were waited for."""
        counted_s = 0.0
        if self._counter is not None:
            counted_s = self._counted_s()
            os.close(self._counter)
        total_s = max(counted_s, self._waited_s)
        if self._read_s is not None and total_s - self._read_s < END_S:
            total_s = self._read_s
        return max(0.0, total_s - self._began_s)

    def _counted_s(self) -> float:
        assert self._counter is not None
        count: int = struct.unpack("Q", os.read(self._counter, 8))[0]
        return count / NS_PER_S


def witness() -> str:
    """Who measures the CPU time of children here."""
    if sys.platform != "linux":
        return "none"
    counter = _open_counter(os.getpid())
    if counter is None:
        return "wait4"
    os.close(counter)
    return "perf"


def _process_s(process: int) -> float:
    """CPU seconds of a running process, without its children."""
    if sys.platform != "linux":
        return 0.0
    try:
        return time.clock_gettime((~process << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def _open_counter(process: int) -> int | None:
    number = PERF_EVENT_OPEN.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return None
    attribute = bytearray(ATTRIBUTE_BYTES)
    struct.pack_into("IIQQQQQ", attribute, 0, SOFTWARE, ATTRIBUTE_BYTES, TASK_CLOCK, 0, 0, 0, INHERIT)
    libc: Any = ctypes.CDLL(None, use_errno=True)
    counter = int(
        libc.syscall(number, (ctypes.c_char * ATTRIBUTE_BYTES).from_buffer(attribute), process, -1, -1, 0)
    )
    return counter if counter >= 0 else None
