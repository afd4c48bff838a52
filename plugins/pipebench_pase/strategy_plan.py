"""A strategy as a plan: one stage on all devices, a split for each operator."""

from collections.abc import Mapping

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


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
    if pins.recompute == "stage":
        raise UnsupportedProblem(f"{planner} does not recompute, recompute=stage is pinned")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"{planner} plans for devices of one type, these are {', '.join(kinds)}")
