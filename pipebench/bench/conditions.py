"""What stands in the way of comparing a measured run with its simulation."""

import os

BUSY = 0.5
"""Processes a core that run or wait before the run begins; from here on they take its time."""


def busy_machine(load: float) -> list[str]:
    """A line for a run that began under this load (processes that ran or waited), where it matters."""
    cores = os.cpu_count() or 1
    if load < BUSY * cores:
        return []
    return [
        f"the machine was busy when the run began (load {load:.1f} on {cores} cores): "
        "it took longer than on an idle one"
    ]
