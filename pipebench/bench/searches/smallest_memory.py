"""The smallest device memory with which a planner still finds a plan, by bisection over numbers one can type."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from pipebench.domain.problem import Problem

DIGITS = 3
"""Memory sizes of so many significant digits are tried, so that the one printed is the one that worked."""
LARGEST_FACTOR = 2**20


def smallest_memory(
    problem: Problem, feasible: Callable[[Problem], int], lower_bytes: int, deadline_s: float
) -> int | None:
    """Bytes of device memory that work where the next smaller size of three digits does not.

    None when nothing works or time is out before anything does. The planner is assumed to profit from memory;
    where it does not, the answer is a size that works all the same, because the size returned has been tried.

    lower_bytes: a proven minimum, from where the search starts. feasible: the peak memory in bytes of the plan
    that the planner finds and the check accepts, 0 when it finds none; the peak, where it is lower than the
    memory given, is tried next.
    """
    least = rounded_up(max(lower_bytes, problem.cluster.memory_bytes, 1))
    largest = LARGEST_FACTOR * least
    works = least
    while not (peak := feasible(with_memory(problem, works))):
        least, works = works, rounded_up(works * 2)
        if works > largest or _over(deadline_s):
            return None
    if works == least:
        return works
    # `least` does not work, `works` does.
    while (between := _between(least, works, peak)) is not None and not _over(deadline_s):
        found = feasible(with_memory(problem, between))
        if found:
            works, peak = between, found
        else:
            least, peak = between, 0
    return works


def rounded_up(amount: int) -> int:
    """The smallest number of three significant digits that is no smaller."""
    unit: int = 10 ** max(0, len(str(amount)) - DIGITS)
    return -(-amount // unit) * unit


def _between(least: int, works: int, peak: int) -> int | None:
    """A size of three digits strictly between: the one that holds the peak, else in the middle; None: no more."""
    holds = rounded_up(max(peak, 1))
    if least < holds < works:
        return holds
    middle = rounded_up((least + works) // 2)
    if middle < works:
        return middle if middle > least else None
    # The middle rounds up to what works: the next number above `least` is the only one left, if it is below.
    following = rounded_up(least + 1)
    return following if following < works else None


def _over(deadline_s: float) -> bool:
    return time.monotonic() > deadline_s


def with_memory(problem: Problem, memory_bytes: int) -> Problem:
    """The same problem on devices of that memory."""
    types = tuple(replace(kind, memory_bytes=memory_bytes) for kind in problem.cluster.types)
    return replace(problem, cluster=replace(problem.cluster, types=types))
