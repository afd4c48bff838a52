"""One stage of a plan as a problem of its own: what another planner may do inside it."""

from msgspec.structs import replace

from pipebench.costs.communicate import slowest
from pipebench.domain.cluster import Cluster
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Profile


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
