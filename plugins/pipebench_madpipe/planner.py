"""The planner `madpipe`: contiguous allocations."""

from pipebench.algorithms.chain import Chain
from pipebench.algorithms.contiguous import Search, StageRange
from pipebench.algorithms.contiguous_plan import contiguous_result
from pipebench.algorithms.contiguous_sweep import sweep
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_madpipe.search import madpipe_search

CONTIGUOUS_ONLY = "only contiguous allocations are searched: no device runs several stages"


def plan(problem: Problem, context: Context) -> PlanResult:
    """The contiguous plan of shortest period under 1F1B*, over all micro-batch sizes (async).

    Raises UnsupportedProblem, InfeasibleProblem with the least memory that would do, and DeadlineReached
    when the time is out before there is any plan.
    """
    model = CostModel(problem)

    def search(chain: Chain, stages: StageRange, memory: int, below_ns: int | None) -> Search:
        return madpipe_search(
            chain, stages, memory, context.options.iterations, below_ns, context.count, context.out_of_time
        )

    best = sweep(model, search, context.out_of_time)
    if best is None:
        raise DeadlineReached("the time limit was reached before any contiguous allocation was found")
    return contiguous_result(model, best, (CONTIGUOUS_ONLY,))
