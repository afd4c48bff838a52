"""The work that every planner of this folder does: a search of a fixed number of steps, then a plan that is valid.

No planner of its own. The steps grow with the operators, so that a toy problem costs next to nothing.
"""

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult

STEPS_PER_OPERATOR = 6_000
LEAST_OPERATORS = 40
"""Smaller problems get a thousandth of the steps."""


def operator_names(problem: Problem) -> tuple[str, ...]:
    """The operators, each after those that it reads."""
    graph = problem.profile.graph
    return tuple(graph.operators[position].name for position in graph.topological)


def is_small(problem: Problem) -> bool:
    """Whether it is a toy."""
    return len(problem.profile.graph.operators) < LEAST_OPERATORS


def steps(problem: Problem) -> int:
    """How long the search is."""
    count = len(problem.profile.graph.operators) * STEPS_PER_OPERATOR
    return count // 1000 if is_small(problem) else count


def grind(count: int, value: int = 1) -> int:
    """Compute: `count` steps that cannot be shortened."""
    for _ in range(count):
        value = (value * 6364136223846793005 + 1442695040888963407) % 18446744073709551616
    return value


def search(problem: Problem) -> int:
    """A number that says where the model is cut; only the whole search gives it."""
    return grind(steps(problem))


def plan_of(problem: Problem, number: int) -> PlanResult:
    """The plan that belongs to the number: two stages where there are two devices, else one."""
    names = operator_names(problem)
    cut = len(names) // 2 + number % 3 if problem.cluster.size > 1 and len(names) > 8 else len(names)
    parts = [part for part in (names[:cut], names[cut:]) if part]
    return PlanResult(
        plan=Plan(stages=tuple(Stage(operators=part, devices=(i,), micro_batch=1) for i, part in enumerate(parts)))
    )


def solve(problem: Problem) -> PlanResult:
    """Search, then the plan."""
    return plan_of(problem, search(problem))
