"""Orders that a plan does not allow."""

from pipebench.check.memory import finite_excess
from pipebench.check.schedule import deadlock, waiting_stages, waits
from pipebench.check.tasks import finite_tasks
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule

MORE_IN_FLIGHT = "raise in_flight of the stage that waits, or leave it 0 for the rule"
LISTED_BEHIND = "list each stage behind those that it waits for, or name another scheduler"


def declares(plan: Plan) -> bool:
    """Whether a stage declares what it keeps in flight."""
    return any(stage.in_flight for stage in plan.stages)


def allowed(problem: Problem, plan: Plan, made: FiniteSchedule, scheduler: str, hint: str) -> FiniteSchedule:
    """The schedule. Every lane can go on, and no stage keeps more in flight than it declares.

    hint: what to do where lanes wait for each other. Raises UnsupportedProblem for any other schedule.
    """
    tasks = finite_tasks(problem, plan, made)
    standstill = deadlock(tasks, waits(plan, tasks, waiting_stages(CostModel(problem), plan)))
    if standstill is not None:
        raise UnsupportedProblem(f"{scheduler}: {standstill.message}", hint)
    excess = finite_excess(plan, tasks)
    if excess is not None:
        raise UnsupportedProblem(f"{scheduler}: {excess.message}", "leave in_flight 0, or name another scheduler")
    return made
