"""The smallest device memory with which a planner still finds a plan, by bisection."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from pipebench.domain.problem import Problem

RELATIVE_STEP = 0.01
LARGEST_FACTOR = 2**20


def smallest_memory(
    problem: Problem, feasible: Callable[[Problem], bool], lower_bytes: int, deadline_s: float
) -> int | None:
    """Bytes of device memory, within 1 % above the least that works; None when nothing works or time is out.

    lower_bytes: a proven minimum, from where the search starts. feasible: whether the planner finds a plan
    that the check accepts. The planner is assumed to profit from memory; where it does not, the answer is a
    size that works all the same, because the size returned has been tried.
    """
    least = max(lower_bytes, problem.cluster.memory_bytes, 1)
    works = least
    while not feasible(with_memory(problem, works)):
        least, works = works, works * 2
        if works > LARGEST_FACTOR * max(lower_bytes, problem.cluster.memory_bytes) or _over(deadline_s):
            return None
    while works - least > max(1.0, RELATIVE_STEP * least) and not _over(deadline_s):
        middle = (least + works) // 2
        if feasible(with_memory(problem, middle)):
            works = middle
        else:
            least = middle
    return works


def _over(deadline_s: float) -> bool:
    return time.monotonic() > deadline_s


def with_memory(problem: Problem, memory_bytes: int) -> Problem:
    """The same problem on devices of that memory."""
    types = tuple(replace(kind, memory_bytes=memory_bytes) for kind in problem.cluster.types)
    return replace(problem, cluster=replace(problem.cluster, types=types))
