"""The executor `simulate`."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate


def execute(problem: Problem, plan: Plan, schedule: Schedule, context: Context) -> Trace:
    """The simulated trace; counts its tasks and transfers. Raises what simulation.simulate raises."""
    trace = simulate(problem, plan, schedule)
    context.count("tasks", len(trace.kinds))
    context.count("transfers", len(trace.transfer_kinds))
    return trace
