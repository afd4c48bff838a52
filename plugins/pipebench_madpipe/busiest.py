"""The load of the busiest resource: no period is shorter."""

from pipebench.algorithms.pattern import Pattern


def busiest_ns(pattern: Pattern) -> int:
    """ns of each period on the device or link that is occupied longest, at least 1."""
    loads: dict[int, int] = {}
    for resource, duration in zip(pattern.resource.tolist(), pattern.duration.tolist(), strict=True):
        loads[resource] = loads.get(resource, 0) + duration
    return max([1, *(load for resource, load in loads.items() if resource >= 0)])
