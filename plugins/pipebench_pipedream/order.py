"""Linear orders of an operator graph: one branch after the other, or level by level."""

from typing import Literal

from pipebench.domain.graph import OperatorGraph


def linear_order(graph: OperatorGraph, order: Literal["branch", "level"]) -> tuple[int, ...]:
    """Positions of all operators in topological order."""
    return branch_order(graph) if order == "branch" else level_order(graph)


def branch_order(graph: OperatorGraph) -> tuple[int, ...]:
    """Depth first: follows a branch to the join that it waits at, then takes the branch listed next."""
    waiting = [len(before) for before in graph.predecessors]
    ready = [op for op in reversed(range(len(waiting))) if waiting[op] == 0]
    order: list[int] = []
    while ready:
        operator = ready.pop()
        order.append(operator)
        for successor in reversed(graph.successors[operator]):
            waiting[successor] -= 1
            if waiting[successor] == 0:
                ready.append(successor)
    return tuple(order)


def level_order(graph: OperatorGraph) -> tuple[int, ...]:
    """By the largest number of operators on a path from the inputs, ties as listed."""
    level = [0] * len(graph.operators)
    for operator in graph.topological:
        for successor in graph.successors[operator]:
            level[successor] = max(level[successor], level[operator] + 1)
    return tuple(sorted(range(len(level)), key=lambda operator: (level[operator], operator)))
