"""C1 and C2: each stage is convex, and edges between stages form no cycle (GraphPipe section 4)."""

from collections.abc import Collection, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness

Holders = list[list[int]]


def holders_of(graph: OperatorGraph, plan: Plan, pipeline: range | None = None) -> Holders:
    """For each operator the stages of one pipeline that hold it, ascending.

    pipeline: positions of the pipeline's stages. Default: the first pipeline.
    """
    holders: Holders = [[] for _ in graph.operators]
    for position in plan.pipeline_of(0) if pipeline is None else pipeline:
        for name in plan.stages[position].operators:
            holders[graph.index[name]].append(position)
    return holders


def parents(graph: OperatorGraph, holders: Holders, operator: int, stage: int) -> Iterator[tuple[int, int]]:
    """The nodes whose tensors an operator reads in a stage: the node of its own stage, else that of the first
    holder.
    """
    for before in graph.predecessors[operator]:
        yield before, stage if stage in holders[before] else holders[before][0]


def data_edges(graph: OperatorGraph, plan: Plan) -> set[tuple[int, int]]:
    """Pairs of stages (producer, consumer) of one pipeline with at least one tensor from one to the other."""
    pipelines = [plan.pipeline_of(first) for first in range(0, len(plan.stages), plan.pipeline_length)]
    return {
        (source, stage)
        for holders in (holders_of(graph, plan, pipeline) for pipeline in pipelines)
        for operator, stages in enumerate(holders)
        for stage in stages
        for _, source in parents(graph, holders, operator, stage)
        if source != stage
    }


Node = tuple[int, int]


def leaves_and_returns(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage that a path leaves and re-enters; the witness names the operator outside the stage.

    One pass in topological order keeps for each node the set of stages (as bits) that some path to it has left. It
    takes O(edges x stages / 64). The other pipelines of a plan hold what the first one holds.
    """
    graph = problem.profile.graph
    holders = holders_of(graph, plan)
    left: dict[Node, int] = {}
    for operator in graph.topological:
        for stage in holders[operator]:
            gone = 0
            for parent in parents(graph, holders, operator, stage):
                gone |= left[parent]
                if parent[1] != stage:
                    gone |= 1 << parent[1]
            if gone >> stage & 1:
                return _witness(graph, holders, (operator, stage))
            left[operator, stage] = gone
    return None


def _witness(graph: OperatorGraph, holders: Holders, returned: Node) -> Witness:
    path = _shortest_return(graph, holders, returned)
    stage = returned[1]
    names = [graph.operators[operator].name for operator, _ in path]
    steps = " -> ".join(f"{name} (stage {s})" for name, (_, s) in zip(names, path, strict=True))
    message = f"stage {stage} is not convex: a path leaves it through {names[1]!r} and returns: {steps}"
    return Witness(rule="C1", message=message, stage=stage, operator=names[1])


def _shortest_return(graph: OperatorGraph, holders: Holders, returned: Node) -> list[Node]:
    """The shortest path that leaves a stage and re-enters it at `returned`."""
    import networkx  # only a plan that is wrong needs it

    back = networkx.DiGraph()
    for operator, stages in enumerate(holders):
        for stage in stages:
            if stage == returned[1] and (operator, stage) != returned:
                continue
            for parent in parents(graph, holders, operator, stage):
                if parent[1] != stage or stage != returned[1]:
                    back.add_edge((operator, stage), parent)
    paths: dict[Node, list[Node]] = networkx.single_source_shortest_path(back, returned)
    leaving = [path for end, path in paths.items() if end[1] == returned[1] and end != returned]
    return min(leaving, key=len)[::-1]


def shortest_cycle(successors: Sequence[Collection[int]]) -> list[int]:
    """The nodes of a shortest cycle in edge order, from its smallest node; empty when there is none.

    Of several shortest cycles, the one with the smallest first node is returned.
    networkx is imported only when the graph has a cycle, so valid plans and schedules never load it.
    """
    try:
        TopologicalSorter(dict(enumerate(successors))).prepare()
    except CycleError:
        import networkx
    else:
        return []
    graph = networkx.DiGraph((node, after) for node, ends in enumerate(successors) for after in sorted(ends))
    best: list[int] = []
    for start in sorted(graph):
        longest = len(best) - 2 if best else None
        paths = networkx.single_source_shortest_path(graph, start, cutoff=longest)
        closed = [path for path in paths.values() if graph.has_edge(path[-1], start)]
        best = min(closed, key=len, default=best)
        if len(best) == 1:
            break
    return best


def cyclic_stages(problem: Problem, plan: Plan) -> Witness | None:
    """A shortest cycle of stages. Each step says whether tensors or an order edge cause it.

    With routing `relay` a tensor from stage i to stage j > i causes every step between them. Tensors that would go
    against the order of the list are left to the routing rule.
    """
    data = data_edges(problem.profile.graph, plan)
    if plan.routing == "relay" and all(source < target for source, target in data):
        data |= {(hop, hop + 1) for source, target in data for hop in range(source, target)}
    successors: list[set[int]] = [set() for _ in plan.stages]
    for before, after in data | set(plan.order_edges):
        successors[before].add(after)
    cycle = shortest_cycle(successors)
    if not cycle:
        return None
    steps = [str(cycle[0])]
    for before, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        steps.append(f"{'->' if (before, after) in data else '-order->'} {after}")
    return Witness(rule="C2", message=f"cycle of stages: {' '.join(steps)}", stage=cycle[0])
