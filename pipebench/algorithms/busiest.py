"""The load of the busiest resource: no period is shorter."""

from collections.abc import Sequence

from pipebench.algorithms.pattern import Pattern


def busiest_ns(pattern: Pattern) -> int:
    """ns of each period on the device or link that is occupied longest, at least 1."""
    return largest_load(pattern.duration.tolist(), pattern.resource.tolist())


def largest_load(duration: Sequence[int], resource: Sequence[int]) -> int:
    """The same from lists; resource -1 is none."""
    loads: dict[int, int] = {}
    for one, lasts in zip(resource, duration, strict=True):
        loads[one] = loads.get(one, 0) + lasts
    return max([1, *(load for one, load in loads.items() if one >= 0)])
