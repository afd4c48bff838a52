"""Cores for the processes of a node, and how the threads of a process share its core."""

import contextlib
import os
import time
from pathlib import Path

LOOK_S = 0.1
"""How long the load of cores is looked at, to give out those that others use least."""
STAT = Path("/proc/stat")


def cores_for(processes: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """A block of `threads` cores for each process, the idlest ones first; empty where there are too few.

    A scheduler may put two processes that wait for each other on one core, and a thread that hands a message over
    then waits for a whole time slice (some milliseconds) behind the other process's task.
    """
    if not hasattr(os, "sched_getaffinity"):  # no such call outside Linux
        return ()
    allowed = sorted(os.sched_getaffinity(0))
    if processes * threads > len(allowed):
        return ()
    busy = _busy_ticks()
    if busy and processes * threads < len(allowed):
        time.sleep(LOOK_S)
        after = _busy_ticks()
        allowed.sort(key=lambda core: after.get(core, 0) - busy.get(core, 0))
    return tuple(tuple(sorted(allowed[place * threads : (place + 1) * threads])) for place in range(processes))


def keep_to(cores: tuple[int, ...]) -> None:
    """Keep this process, and the threads that it starts from now on, to these cores."""
    os.sched_setaffinity(0, cores)


def start_patient_threads() -> None:
    """Threads that this one starts from now on push no other thread from a core: they wait for their turn.

    A thread of gloo that reads and writes sockets tries a lock that the sending thread may hold, again and again.
    Were it to push that thread from their core, it would spin for the rest of its time slice (some milliseconds),
    since the holder cannot run. `give_way` lets it run where it has something to do.
    Source: sched(7), SCHED_BATCH.
    """
    _schedule("SCHED_BATCH")


def start_ordinary_threads() -> None:
    """This thread, and those that it starts from now on, are scheduled as usual again."""
    _schedule("SCHED_OTHER")


def _schedule(policy: str) -> None:
    if hasattr(os, policy):  # no such call outside Linux
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, getattr(os, policy), os.sched_param(0))


def give_way() -> None:
    """Let other threads of this process run that wait for its core."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def _busy_ticks() -> dict[int, int]:
    """Ticks that each core was busy since the machine started; empty where the system does not tell."""
    try:
        lines = STAT.read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, *ticks = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            idle, waiting = int(ticks[3]), int(ticks[4])
            found[int(name[3:])] = sum(map(int, ticks[:8])) - idle - waiting
    return found
