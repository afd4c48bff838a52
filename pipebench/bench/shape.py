"""The shape of a plan: how deep and how wide its stages stand, and where it cuts the model."""

from collections.abc import Sequence
from typing import Any

from pipebench.costs.messages import stage_edges
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.value import digest


def shape_fields(problem: Problem, plan: Plan) -> dict[str, Any]:
    """The columns of a row that the stages alone decide."""
    edges = stage_edges(problem.profile.graph, plan)
    return {
        "stages": len(plan.stages),
        "depth": depth(len(plan.stages), edges),
        "width": width(len(plan.stages), edges),
        "cut_id": cut_id(plan),
        "replicas": tuple(stage.data_parallel * plan.all_pipelines for stage in plan.stages),
        "devices_used": plan.devices_used * problem.cluster.rank_count,
    }


def cut_id(plan: Plan) -> str:
    """The same for plans whose stages hold the same operators, whatever their order, devices and replicas."""
    return digest(sorted(sorted(stage.operators) for stage in plan.stages))


def depth(stages: int, edges: Sequence[tuple[int, int]]) -> int:
    """Stages on the longest path of the stage graph."""
    longest = [1] * stages
    for _ in range(stages):
        for before, after in edges:
            longest[after] = max(longest[after], min(longest[before] + 1, stages))
    return max(longest)


def width(stages: int, edges: Sequence[tuple[int, int]]) -> int:
    """The most stages of which none waits for another: 1 for a chain.

    The largest antichain: the number of stages less a largest matching of stages that wait to stages that they
    wait for (Dilworth; König).
    """
    if depth(stages, edges) == stages:
        return 1
    import networkx  # a chain does without

    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(stages))
    waits = networkx.transitive_closure_dag(graph).edges
    pairs = networkx.Graph((("before", one), ("after", other)) for one, other in waits)
    before = {node for node in pairs if node[0] == "before"}
    matched = networkx.bipartite.hopcroft_karp_matching(pairs, before)
    return stages - len(matched) // 2
