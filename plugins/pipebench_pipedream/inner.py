"""Stages split further: another planner says how to run the operators of a stage on its devices."""

from msgspec.structs import replace

from pipebench.algorithms.micro_batches import refuse_micro_batch_size
from pipebench.algorithms.planning import mini_batch_ns
from pipebench.check import check_schedule
from pipebench.costs.messages import slowest
from pipebench.defaults import scheduler_for
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Profile
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context


def stage_problem(problem: Problem, stage: Stage) -> Problem:
    """The stage's operators on its devices, one of its micro-batches as the mini-batch, synchronous.

    Tensors from other stages are inputs, with gradients where they have them. Device ids count from 0, all on one
    link level: the slowest that the stage's devices span. Nothing is pinned but the micro-batch and the reserve.
    """
    names = set(stage.operators)
    kept = [position for position, op in enumerate(problem.profile.graph.operators) if op.name in names]
    graph = _part(problem.profile.graph, kept)
    costs = tuple(
        replace(of_type, operators=tuple(of_type.operators[position] for position in kept))
        for of_type in problem.profile.costs
    )
    profile = Profile(name=problem.profile.name, graph=graph, precision=problem.profile.precision, costs=costs)
    return Problem(
        profile=profile,
        cluster=_devices(problem.cluster, stage.devices),
        mini_batch=stage.micro_batch,
        regime=replace(problem.regime, mode="sync"),
        pins=Pins(micro_batch=stage.micro_batch, reserve=problem.pins.reserve),
    )


def _part(graph: OperatorGraph, kept: list[int]) -> OperatorGraph:
    operators = tuple(graph.operators[position] for position in kept)
    names = {operator.name for operator in operators}
    read = {name for operator in operators for name in operator.inputs}
    used = {name for operator in operators for name in operator.parameters}
    tensors = tuple(
        tensor if tensor.producer in names else replace(tensor, producer=None)
        for tensor in graph.tensors
        if tensor.producer in names or tensor.name in read
    )
    parameters = tuple(parameter for parameter in graph.parameters if parameter.name in used)
    return OperatorGraph(name=graph.name, operators=operators, tensors=tensors, parameters=parameters)


def _devices(cluster: Cluster, devices: tuple[int, ...]) -> Cluster:
    kinds = tuple(cluster.devices[device] for device in devices)
    level = replace(slowest(cluster, min(devices), max(devices)), group=len(devices))
    return Cluster(
        name=cluster.name,
        types=tuple(each for each in cluster.types if each.name in kinds),
        devices=kinds,
        levels=(level,),
        link_mode=cluster.link_mode,
    )


def split_further(problem: Problem, found: PlanResult, inner: str, context: Context) -> PlanResult:
    """The plan with those of its stages split as `inner` says that make the mini-batch shorter and fit.

    Stages are tried in their order; the simulated mini-batch decides. Stages that do not gain, or whose memory
    is too little for `inner`, stay replicated. Raises UnsupportedProblem where `inner` returns more than one
    stage, or where replicas are pinned (a split stage has none).
    """
    refuse_micro_batch_size(f"pipedream[inner={inner}]", problem)
    if problem.regime.context_ranks > 1:
        raise UnsupportedProblem(
            f"pipedream[inner={inner}] does not split operators whose sequences ranks share out"
        )
    if problem.pins.data_parallel is not None:
        raise UnsupportedProblem(
            f"pipedream[inner={inner}] splits operators in place of replicas, "
            f"{problem.pins.data_parallel} replicas are pinned"
        )
    best, best_ns = found.plan, mini_batch_ns(problem, found.plan, context)
    tried = gained = 0
    for position, stage in enumerate(found.plan.stages):
        if len(stage.devices) == 1 or context.out_of_time():
            continue
        tried += 1
        try:
            split = _inside(problem, stage, inner, context)
        except InfeasibleProblem:
            continue
        stages = (*best.stages[:position], split, *best.stages[position + 1 :])
        candidate = replace(best, stages=stages)
        if not _fits(problem, candidate, context):
            continue
        time_ns = mini_batch_ns(problem, candidate, context)
        if time_ns is not None and (best_ns is None or time_ns < best_ns):
            best, best_ns, gained = candidate, time_ns, gained + 1
    context.count("stages_tried_inside", tried)
    context.count("stages_split_inside", gained)
    said = f"{gained} of {tried} replicated stages run faster split as {inner} says"
    return replace(found, plan=best, notices=(*found.notices, said), termination="heuristic")


def _inside(problem: Problem, stage: Stage, inner: str, context: Context) -> Stage:
    """The stage on the same devices, its operators split as the inner planner says."""
    made = context.plan(inner, stage_problem(problem, stage)).plan
    if len(made.stages) != 1:
        raise UnsupportedProblem(f"inner={inner} returned {len(made.stages)} stages for one")
    (inside,) = made.stages
    splits = dict(zip(inside.operators, inside.sharding, strict=False))
    return replace(
        stage,
        data_parallel=inside.data_parallel,
        tensor_parallel=len(stage.devices) // inside.data_parallel,
        replicas="split",
        in_flight=min(stage.in_flight * stage.turns, problem.mini_batch),
        sharding=tuple(splits.get(name, {}) for name in stage.operators),
    )


def _fits(problem: Problem, plan: Plan, context: Context) -> bool:
    name = scheduler_for(problem.regime.mode, in_turn=plan.takes_turns)
    try:
        schedule = context.schedule(name, problem, plan)
    except InfeasibleProblem:
        return False
    return check_schedule(problem, plan, schedule).status == "valid"
