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
    """The shortest path that ends at `returned`, starts in its stage and lies outside it between."""
    after: dict[Node, Node] = {}
    frontier = [returned]
    while True:
        reached: list[Node] = []
        for node in frontier:
            for parent in parents(graph, holders, *node):
                if parent[1] == returned[1]:
                    if node == returned:
                        continue
                    path = [parent, node]
                    while path[-1] != returned:
                        path.append(after[path[-1]])
                    return path
                if parent not in after:
                    after[parent] = node
                    reached.append(parent)
        frontier = reached
