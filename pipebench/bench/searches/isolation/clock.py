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
"""Its own: the server that forks children imports no numpy, as `costs` do."""
END_S, END_PART = 0.02, 0.1
"""CPU seconds, or part of its time, that a process may use to end; one that uses more is still at work."""
TICKS = (5, 6, 7)
"""Fields of the first line of /proc/stat: time of interrupts, hard and soft, and time that other machines took."""
MOST_STOLEN, LEAST_HIDDEN = 0.2, 0.02
"""Parts of what the counter shows: the most that is taken for stolen, the least that is called hidden."""


class ProcessClock:
    """CPU seconds of one child and its descendants. Make it before the child starts others.

    Two witnesses. `wait4` leaves out processes that nobody waits for. A counter that every descendant inherits,
    where the kernel permits one, sees them; but it also counts interrupts and what other virtual machines take
    from the core: 1 to 7 per cent on a rented one. So the counter says how the time is spread, and `wait4` says
    how much it is in all, unless the counter shows more than was stolen: then somebody hides work.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._counter = _open_counter(process)
        self._stolen_s = _stolen_s()
        self._began_s = 0.0
        self._read_s: float | None = None
        self._waited_s = 0.0

    def start(self) -> float:
        """What was used up to now, in CPU seconds; it is not counted."""
        self._began_s = self._counted_s() if self._counter is not None else _process_s(self._process)
        return self._began_s

    def read(self) -> None:
        """The child has sent what it found. What its end costs is not counted, unless it is long."""
        if self._counter is not None:
            self._read_s = self._counted_s()

    def add(self, usage: resource.struct_rusage) -> None:
        """What `wait4` said of the child, or of an orphan that it left."""
        self._waited_s += usage.ru_utime + usage.ru_stime

    def stop(self) -> float:
        """CPU seconds since the start, when all have ended and were waited for."""
        if self._counter is None:
            return max(0.0, self._waited_s - self._began_s)
        counted_s = self._counted_s()
        os.close(self._counter)
        scale = (
            settled_s(counted_s, self._waited_s, _stolen_s() - self._stolen_s) / counted_s if counted_s else 0.0
        )
        whole_s = counted_s - self._began_s
        if self._read_s is not None:
            timed_s = self._read_s - self._began_s
            whole_s = timed_s if whole_s - timed_s < max(END_S, END_PART * timed_s) else whole_s
        return max(0.0, whole_s * scale)

    def _counted_s(self) -> float:
        assert self._counter is not None
        count: int = struct.unpack("Q", os.read(self._counter, 8))[0]
        return count / NS_PER_S


def settled_s(counted_s: float, waited_s: float, stolen_s: float) -> float:
    """CPU seconds of a process and its descendants, from what the counter, `wait4` and the machine say.

    stolen_s: what interrupts and other machines took meanwhile, on all cores.
    """
    stolen_s = min(stolen_s, MOST_STOLEN * counted_s)
    hidden_s = counted_s - waited_s - stolen_s
    return counted_s if hidden_s > max(END_S, LEAST_HIDDEN * counted_s) else waited_s


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


def _stolen_s() -> float:
    """Seconds of interrupts, and those that other virtual machines took, on all cores since the start."""
    try:
        with open("/proc/stat") as file:
            ticks = file.readline().split()[1:]
        return sum(int(ticks[field]) for field in TICKS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
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
