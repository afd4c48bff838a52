"""The planner `madpipe`: contiguous allocations."""

from pipebench.algorithms.contiguous_plan import contiguous_result
from pipebench.algorithms.contiguous_sweep import sweep
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached

CONTIGUOUS_ONLY = "only contiguous allocations are searched: no device runs several stages"


def plan(problem: Problem, context: Context) -> PlanResult:
    """The contiguous allocation of shortest period under 1F1B*, over all micro-batch sizes (async).

    Without its special processor, and with exact delays, MadPipe's search for the best target period is the
    exact contiguous optimum: min over That of max(MadPipe-DP(That), That) is attained where MadPipe-DP first
    meets its target, which is what contiguous_optimum bisects for. Counters: probes (MadPipe-DP at one
    target), states. Raises UnsupportedProblem, InfeasibleProblem with the least memory that would do, and
    DeadlineReached when the time is out before there is any plan.
    """
    model = CostModel(problem)
    best = sweep(model, context.options.cuts, context.count, context.out_of_time)
    if best is None:
        raise DeadlineReached("the time limit was reached before any contiguous allocation was found")
    return contiguous_result(model, best, (CONTIGUOUS_ONLY,))
