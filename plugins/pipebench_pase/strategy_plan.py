"""A strategy as a plan, one stage on all devices with a split for each operator, and as a planner's result."""

from collections.abc import Mapping

from pipebench.algorithms.coarse import require_whole_operators
from pipebench.algorithms.micro_batches import refuse_micro_batch_size
from pipebench.algorithms.planning import refuse_recomputation
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench_pase.tables import PricedProblem, assumptions


def strategy_plan(problem: Problem, samples: int, splits: Mapping[str, Mapping[str, int]]) -> Plan:
    """One stage; every device takes part in each operator, as far as its split goes."""
    graph = problem.profile.graph
    names = tuple(graph.operators[position].name for position in graph.topological)
    stage = Stage(
        operators=names,
        devices=tuple(range(problem.cluster.size)),
        tensor_parallel=problem.cluster.size,
        micro_batch=samples,
        in_flight=samples,
        sharding=tuple(dict(splits[name]) for name in names),
    )
    return Plan(stages=(stage,))


def refuse_unsupported(planner: str, problem: Problem) -> None:
    """Raise UnsupportedProblem for what one stage of split operators cannot express."""
    require_whole_operators(problem, planner)
    refuse_micro_batch_size(planner, problem)
    pins = problem.pins
    if problem.regime.mode != "sync":
        raise UnsupportedProblem(f"{planner} plans for synchronous updates; the problem is async")
    for name, pinned in (("tensor", pins.tensor_parallel), ("data", pins.data_parallel)):
        if pinned is not None:
            raise UnsupportedProblem(
                f"{planner} splits each operator in its own way: it has no degree of {name} parallelism, "
                f"{pinned} is pinned"
            )
    if (pins.pipeline or 1) > 1 or (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"{planner} has one stage, more are pinned")
    refuse_recomputation(problem, planner)
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"{planner} plans for devices of one type, these are {', '.join(kinds)}")


def strategy_result(
    problem: Problem,
    prices: PricedProblem,
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
        notices=(*assumptions(problem), *notices, *(_description(problem, splits) if describe else ())),
    )


def _description(problem: Problem, splits: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    return tuple(
        f"{operator.name}: {' '.join(f'{dim}/{parts}' for dim, parts in splits[operator.name].items())}"
        for operator in problem.profile.graph.operators
        if splits[operator.name]
    )
