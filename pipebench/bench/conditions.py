"""What stands in the way of comparing a measured run with its simulation: others that work on the machine."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)
"""Of a line of STAT: user, nice, system, irq, softirq, and what the hypervisor gave to others."""
DISTURBING = 0.25
"""Cores that others use; from here on a run is said to be disturbed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since the machine started, of all and of this process with its ended children."""

    at_s: float
    all_s: float
    own_s: float


def usage() -> Usage | None:
    """What was used up to now; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(number) for number in STAT.read_text().splitlines()[0].split()[1:]]
        own = os.times()
        return Usage(
            at_s=time.monotonic(),
            all_s=sum(ticks[column] for column in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK"),
            own_s=own.user + own.system + own.children_user + own.children_system,
        )
    return None


def disturbance(before: Usage | None, after: Usage | None) -> list[str]:
    """A line for a run between two moments in which others used the machine too."""
    if before is None or after is None or after.at_s <= before.at_s:
        return []
    others = (after.all_s - before.all_s - after.own_s + before.own_s) / (after.at_s - before.at_s)
    if others < DISTURBING:
        return []
    cores = os.cpu_count() or 1
    return [
        f"others used {others:.1f} of {cores} cores during the run: on an idle machine it may have been faster"
    ]
