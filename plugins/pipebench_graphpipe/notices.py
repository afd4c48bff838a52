"""What a user should know about a plan besides the plan."""

from pipebench.algorithms.series_parallel import Decomposition
from pipebench.domain.problem import Problem


def linearised(problem: Problem, decomposition: Decomposition) -> tuple[str, ...]:
    """One notice for each region that is not series-parallel."""
    names = [operator.name for operator in problem.profile.graph.operators]
    return tuple(
        f"not series-parallel between {names[region[0]]!r} and {names[region[-1]]!r}: "
        f"{len(region)} operators put in a line"
        for region in decomposition.linearised
    )
