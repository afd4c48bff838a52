"""Peaks against device memory: fits, tight, does not fit."""

from collections.abc import Mapping

from pipebench.costs.quantise import whole_bytes
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Fit


def fit_of(problem: Problem, peaks: Mapping[int, int]) -> Fit:
    """`fits`, `tight` (inside the reserve that the pins ask for) or `does not fit`, for the worst device.

    peaks: device id to bytes. The reserve is rounded up to whole bytes.
    """
    tight = False
    for device, peak in peaks.items():
        memory = problem.cluster.type_of(device).memory_bytes
        if peak > memory:
            return "does not fit"
        tight |= peak > memory - whole_bytes(memory * problem.pins.reserve)
    return "tight" if tight else "fits"


def most_over(problem: Problem, peaks: Mapping[int, int]) -> tuple[int, int] | None:
    """The device that lacks the most memory and how many bytes; None when all fit."""
    over = {device: peak - problem.cluster.type_of(device).memory_bytes for device, peak in peaks.items()}
    worst = min(over, key=lambda device: (-over[device], device), default=None)
    return None if worst is None or over[worst] <= 0 else (worst, over[worst])
