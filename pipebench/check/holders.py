"""Copies of operators in stages: who holds an operator, and from which stage a reader gets its tensors.

A node is an (operator, stage) pair: a constant operator that is cloned has one in each stage that holds it.
"""

from collections.abc import Iterator

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan

Holders = list[list[int]]


def holders_of(graph: OperatorGraph, plan: Plan, pipeline: range | None = None) -> Holders:
    """For each operator the stages that hold it, ascending, of one pipeline of the plan.

    pipeline: the positions of its stages, those of the first one unless they are given.
    """
    holders: Holders = [[] for _ in graph.operators]
    for position in plan.pipeline_of(0) if pipeline is None else pipeline:
        for name in plan.stages[position].operators:
            holders[graph.index[name]].append(position)
    return holders


def parents(graph: OperatorGraph, holders: Holders, operator: int, stage: int) -> Iterator[tuple[int, int]]:
    """The nodes whose tensors an operator reads in a stage: the stage's own one, else the first holder's."""
    for before in graph.predecessors[operator]:
        yield before, stage if stage in holders[before] else holders[before][0]


def data_edges(graph: OperatorGraph, plan: Plan) -> set[tuple[int, int]]:
    """Pairs of stages (producer, consumer) of one pipeline between which at least one tensor goes."""
    pipelines = [plan.pipeline_of(first) for first in range(0, len(plan.stages), plan.pipeline_length)]
    return {
        (source, stage)
        for holders in (holders_of(graph, plan, pipeline) for pipeline in pipelines)
        for operator, stages in enumerate(holders)
        for stage in stages
        for _, source in parents(graph, holders, operator, stage)
        if source != stage
    }
