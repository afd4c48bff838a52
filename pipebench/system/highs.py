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


def solve(program: Any, **options: Any) -> bool:
    """Solve a program of PuLP; whether an optimum was found. It takes the threads of others where there are any.

    options: more of `pulp.HiGHS`.
    """
    import pulp  # takes a tenth of a second

    refusal = highs().HighsModelStatus.kNotset
    chosen = {"msg": False, "threads": 1, "random_seed": 0, **options}
    try:
        program.solve(pulp.HiGHS(**chosen))
    finally:
        refused = program.solverModel.getModelStatus() == refusal
        if not refused:
            free_threads()
    if refused:
        program.solve(pulp.HiGHS(**chosen | {"threads": None}))
    return bool(program.status == pulp.LpStatusOptimal)
