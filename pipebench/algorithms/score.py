"""How long one mini-batch of a plan takes, by the suite's own means: what planners compare candidates by."""

from typing import Protocol

from pipebench.costs.estimate import estimate
from pipebench.defaults import schedulers
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace

SCHEDULERS = schedulers()


class Offers(Protocol):
    """What this needs of a planner's context (hooks.context.Context)."""

    @property
    def services(self) -> object | None:
        """None: no other components, the closed form has to do."""

    def schedule(self, name: str, problem: Problem, plan: Plan) -> Schedule:
        """The schedule that another scheduler makes."""

    def simulate(self, problem: Problem, plan: Plan, schedule: Schedule) -> Trace:
        """The suite's simulation."""


def mini_batch_ns(problem: Problem, plan: Plan, context: Offers) -> int | None:
    """Nanoseconds of one mini-batch; None when the scheduler finds no schedule that fits in memory.

    sync: the simulation of the plan under 1F1B. async: the period of 1F1B* times the micro-batches. Without
    services: the suite's closed form.
    """
    if context.services is None:
        return estimate(problem, plan)
    try:
        schedule = context.schedule(SCHEDULERS[problem.regime.mode], problem, plan)
    except InfeasibleProblem:
        return None
    if isinstance(schedule, PeriodicSchedule):
        return schedule.period_ns * (problem.mini_batch // plan.stages[0].micro_batch)
    return context.simulate(problem, plan, schedule).total_ns
