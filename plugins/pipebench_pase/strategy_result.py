"""What the planners of this package return for a strategy."""

from collections.abc import Mapping

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench_pase.pricing import Priced, assumptions
from pipebench_pase.strategy_plan import strategy_plan


def strategy_result(
    problem: Problem,
    prices: Priced,
    splits: Mapping[str, Mapping[str, int]],
    cost: float,
    termination: Termination = "heuristic",
    notices: tuple[str, ...] = (),
) -> PlanResult:
    """The plan with its cost, in the planner's unit and in seconds of all the mini-batch's micro-batches."""
    runs = problem.mini_batch // prices.samples
    return PlanResult(
        plan=strategy_plan(problem, prices.samples, splits),
        claimed_s=cost * prices.unit_s * runs,
        claimed_native=cost,
        claimed_unit=prices.unit,
        termination=termination,
        bound_scope="splits of each operator, in the planner's own cost" if termination == "optimal" else "",
        notices=(*assumptions(problem), *notices),
    )
