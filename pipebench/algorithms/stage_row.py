"""A plan of stages in a row: the same degrees on all, placed by a rule."""

from collections.abc import Sequence
from itertools import pairwise

from pipebench.algorithms.degrees import Way
from pipebench.costs.placement import place
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


def stage_row(
    problem: Problem,
    contents: Sequence[Sequence[int]],
    way: Way,
    *,
    data_parallel: int,
    pipeline: int,
    micro_batch: int,
    placement: PlacementKind = "in-turn",
) -> Plan:
    """contents: operators (positions) of each stage of one pipeline, in the order of execution.

    data_parallel: replicas of a stage in one pipeline. pipeline: device sets. micro_batch: of all these replicas.
    placement: a kind that has a rule; it counts where stages share device sets, as they do in several pipelines.

    Consecutive device ids; with one stage a place what 1F1B keeps in flight, with several that is the scheduler's.
    Raises InfeasibleProblem when the cluster has too few devices, InvalidValue for a number of stages that the
    placement does not have.
    """
    graph = problem.profile.graph
    placed = place([data_parallel * way.tensor_parallel] * pipeline, problem.cluster.size)
    pipelines = pipelines_of_kind(placement) or 1
    rounds = problem.mini_batch // (pipelines * micro_batch)
    several = len(contents) * pipelines > pipeline
    listed = [*contents] * pipelines
    sets = sets_of_stages(placement, pipeline, len(listed)) if several else range(len(listed))
    stages = [
        Stage(
            operators=tuple(graph.operators[op].name for op in operators),
            devices=placed[number],
            data_parallel=data_parallel,
            tensor_parallel=way.tensor_parallel,
            micro_batch=micro_batch,
            in_flight=0 if several else min(len(contents) - position, rounds) * micro_batch,
            choice=way.chosen(tuple(operators)),
            recompute=way.recompute,
        )
        for position, (operators, number) in enumerate(zip(listed, sets, strict=True))
    ]
    length = len(contents)
    return Plan(
        stages=tuple(stages),
        order_edges=tuple((k, after) for k, after in pairwise(range(len(listed))) if after % length),
        placement=placement if several else "apart",
        pipelines=pipelines if several else 1,
    )
