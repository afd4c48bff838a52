"""HiGHS as the suite runs it: one thread, a fixed seed, and nothing printed."""

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


def solver_of_pulp(**options: Any) -> Any:
    """HiGHS for a program of PuLP. options: others, or more, of `pulp.HiGHS`."""
    import pulp  # takes a tenth of a second

    highs()
    return pulp.HiGHS(**{"msg": False, "threads": 1, "random_seed": 0, **options})
