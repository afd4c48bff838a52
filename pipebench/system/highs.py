"""HiGHS as the suite runs it: one thread, a fixed seed, and nothing printed.

A process has one set of threads for all that run HiGHS in it, that of the first; who asks for another number of
them is refused.
"""

from functools import cache
from typing import Any

from pipebench.system.files import printing_nothing


@cache
def highs() -> Any:
    """The module `highspy`. What some versions print at their first instance in a process goes nowhere."""
    import highspy

    solvers: Any = highspy
    with printing_nothing(1):
        solvers.Highs()
    return solvers


def free_threads() -> None:
    """Let the next one that runs HiGHS in this process say how many threads it has."""
    highs().Highs.resetGlobalScheduler(True)


def solver_of_pulp(**options: Any) -> Any:
    """HiGHS for a program of PuLP. options: others, or more, of `pulp.HiGHS`."""
    import pulp  # takes a tenth of a second

    highs()
    return pulp.HiGHS(**{"msg": False, "threads": 1, "random_seed": 0, **options})


def solve(program: Any) -> bool:
    """Solve a linear program of PuLP; whether an optimum was found."""
    import pulp

    program.solve(solver_of_pulp())
    if program.status == pulp.LpStatusNotSolved:  # the threads are somebody else's
        program.solve(solver_of_pulp(threads=None))
    else:
        free_threads()
    return bool(program.status == pulp.LpStatusOptimal)
