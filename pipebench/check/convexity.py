"""C1: a stage is convex, no path leaves it and returns (GraphPipe section 4, C1)."""

from pipebench.check.holders import Holders, holders_of, parents
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness

Node = tuple[int, int]


def leaves_and_returns(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage that a path leaves and enters again; the witness names the operator outside it.

    One pass in topological order keeps, for each node, the set of stages (bits) that some path to it has
    left. O(edges x stages / 64). The other pipelines of a plan hold what the first one holds.
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
    """The shortest path from the stage of `returned` through nodes outside it to `returned`."""
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
