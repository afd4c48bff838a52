"""The planner `contiguous-exact`: the proven best contiguous plan under 1F1B*."""

from pipebench.algorithms.chains.contiguous_plan import contiguous_result, sweep
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached


def plan(problem: Problem, context: Context) -> PlanResult:
    """The shortest period over all cuts into stages of one device and all micro-batch sizes (async).

    Counters: probes (decisions at one period), states (intervals looked at in them). Raises
    UnsupportedProblem, InfeasibleProblem with the least memory that would do, and DeadlineReached when the
    time is out before there is any plan.
    """
    model = CostModel(problem)
    best = sweep(model, context.options.cuts, context.count, context.out_of_time)
    if best is None:
        raise DeadlineReached("the time limit was reached before any contiguous plan was found")
    return contiguous_result(model, best)
