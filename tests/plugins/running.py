"""Run a planner as the host does: with the other components at its service."""

from functools import cache
from typing import Any

from pipebench.bench.services import HostServices
from pipebench.defaults import scheduler_for
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.hooks.context import Context
from pipebench.hooks.manager import Host


@cache
def services() -> HostServices:
    """The services of the installed plugins."""
    return HostServices(Host())


def context(options: Any = None) -> Context:
    """A context with services."""
    return Context(options=options, services=services())


def scheduled(problem: Problem, plan: Plan) -> Schedule:
    """The plan under the default scheduler of its regime."""
    name = scheduler_for(problem.regime.mode, in_turn=plan.takes_turns)
    return services().schedule(name, problem, plan)


def time_ns(problem: Problem, plan: Plan) -> int:
    """Nanoseconds of one mini-batch: simulated in sync, as many periods as it has micro-batches in async."""
    schedule = scheduled(problem, plan)
    if isinstance(schedule, PeriodicSchedule):
        return schedule.period_ns * (problem.mini_batch // plan.stages[0].micro_batch)
    return services().simulate(problem, plan, schedule).total_ns
