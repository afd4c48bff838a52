"""A plan of stages in a row: the same degrees on all, stage k on the devices of place k % pipeline, or in a V."""

from collections.abc import Sequence
from itertools import pairwise

from pipebench.algorithms.degrees import Way
from pipebench.costs.placement import place
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
    vee: bool = False,
) -> Plan:
    """contents: operators (positions) of each stage, in the order of execution; micro_batch: of all replicas.

    vee: stages go to the places of a V, 0 to pipeline - 1 and back, in place of in turn.
    Consecutive device ids; with one stage a place what 1F1B keeps in flight, with several that is the scheduler's.
    Raises InfeasibleProblem when the cluster has too few devices.
    """
    graph = problem.profile.graph
    placed = place([data_parallel * way.tensor_parallel] * pipeline, problem.cluster.size)
    rounds = problem.mini_batch // micro_batch
    several = len(contents) > pipeline
    stages = [
        Stage(
            operators=tuple(graph.operators[op].name for op in operators),
            devices=placed[min(position, 2 * pipeline - 1 - position) if vee else position % pipeline],
            data_parallel=data_parallel,
            tensor_parallel=way.tensor_parallel,
            micro_batch=micro_batch,
            in_flight=0 if several else min(len(contents) - position, rounds) * micro_batch,
            choice=way.chosen(tuple(operators)),
            recompute=way.recompute,
        )
        for position, operators in enumerate(contents)
    ]
    return Plan(stages=tuple(stages), order_edges=tuple(pairwise(range(len(stages)))), shared_devices=several)
