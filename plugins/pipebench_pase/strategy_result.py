"""What the planners of this package return for a strategy."""

from collections.abc import Mapping

from pipebench.costs.formula import Formula
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench_pase.pricing import Priced, assumptions
from pipebench_pase.strategy_plan import strategy_plan


def strategy_result(
    problem: Problem,
    prices: Priced,
    splits: Mapping[str, Mapping[str, int]],
    cost: float,
    describe: bool = False,
    termination: Termination = "heuristic",
    notices: tuple[str, ...] = (),
) -> PlanResult:
    """The plan with its cost, in the planner's unit and in seconds of all the mini-batch's micro-batches.

    describe: a notice for each operator that is cut, in the graph's order: fc6: batch/2 out_features/4.
    """
    runs = problem.mini_batch // prices.samples
    update_ns = Formula(problem.regime, problem.mini_batch).update_ns(0)
    return PlanResult(
        plan=strategy_plan(problem, prices.samples, splits),
        claimed_s=cost * prices.unit_s * runs + update_ns / NS_PER_S,
        claimed_native=cost,
        claimed_unit=prices.unit,
        termination=termination,
        bound_scope="splits of each operator, in the planner's own cost" if termination == "optimal" else "",
        notices=(*assumptions(problem), *notices, *(_described(problem, splits) if describe else ())),
    )


def _described(problem: Problem, splits: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    return tuple(
        f"{operator.name}: {' '.join(f'{dim}/{parts}' for dim, parts in splits[operator.name].items())}"
        for operator in problem.profile.graph.operators
        if splits[operator.name]
    )
