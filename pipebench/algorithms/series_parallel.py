"""Series-parallel decomposition of an operator graph."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.algorithms.reachability import transitive_reduction
from pipebench.algorithms.sp_reduction import Sequence_, TwoTerminal
from pipebench.algorithms.sp_regions import linearise_smallest_region
from pipebench.algorithms.sp_tree import Leaf, Node, Parallel, Series, leaves


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A tree that holds every operator once, and what was done to the graph to get it.

    linearised: regions that are not series-parallel, each as the line of operators that took its place: their
    order is a choice that the graph does not ask for. joins: how many groups of operators were given a point
    to meet because all of one group lead to all of another; that adds no precedence.
    """

    tree: Node
    linearised: tuple[tuple[int, ...], ...] = ()
    joins: int = 0

    @property
    def series_parallel(self) -> bool:
        """Whether the graph itself, without the edges that longer paths imply, is series-parallel."""
        return not self.linearised and self.joins == 0


def decompose(successors: Sequence[Sequence[int]]) -> Decomposition:
    """The series-parallel tree of a directed acyclic graph with any number of sources, sinks and parts.

    successors: for each operator those that read what it produces. Precedences that longer paths imply (skip and
    residual connections) are dropped: they are seen by what crosses a cut, not by the tree. Every operator
    becomes an edge between two points of its own; virtual terminals, which carry no operator, join all
    sources and all sinks. Where no edge can be merged or contracted any more, the smallest offending region is put
    in a line (GraphPipe section 5 converts such graphs without saying how).

    Raises InvalidValue with the cycle when there is one, and for a graph without operators.
    """
    reduced = transitive_reduction(successors)
    graph, joins = _two_terminal(reduced)
    graph.reduce()
    linearised: list[tuple[int, ...]] = []
    while not graph.done:
        linearised.append(tuple(linearise_smallest_region(graph)))
        graph.reduce()
    return Decomposition(_freeze(graph.take(graph.source, graph.sink)), tuple(linearised), joins)


def _two_terminal(successors: Sequence[Sequence[int]]) -> tuple[TwoTerminal, int]:
    """Operator v runs from point 2v to point 2v + 1; the terminals and the meeting points follow."""
    count = len(successors)
    groups = _complete_joins(successors)
    source = 2 * count
    sink = source + 1
    graph = TwoTerminal(sink + 1 + len(groups), source, sink)
    met = {before: sink + 1 + number for number, (group, _) in enumerate(groups) for before in group}
    entered = {operator for after in successors for operator in after}
    for operator, after in enumerate(successors):
        graph.add(2 * operator, 2 * operator + 1, deque([operator]))
        if operator not in entered:
            graph.add(source, 2 * operator, deque())
        if operator in met:
            graph.add(2 * operator + 1, met[operator], deque())
            continue
        for successor in after:
            graph.add(2 * operator + 1, 2 * successor, deque())
        if not after:
            graph.add(2 * operator + 1, sink, deque())
    for number, (_, group) in enumerate(groups):
        for successor in group:
            graph.add(sink + 1 + number, 2 * successor, deque())
    return graph, len(groups)


def _complete_joins(successors: Sequence[Sequence[int]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Groups of several operators that all lead to all of several others, which nobody else leads to."""
    before: dict[int, list[int]] = {}
    alike: dict[tuple[int, ...], list[int]] = {}
    for operator, after in enumerate(successors):
        alike.setdefault(tuple(after), []).append(operator)
        for successor in after:
            before.setdefault(successor, []).append(operator)
    return [
        (tuple(group), after)
        for after, group in alike.items()
        if len(group) > 1 and len(after) > 1 and all(before[successor] == group for successor in after)
    ]


def _freeze(carried: Sequence_) -> Node:
    """The tree of a sequence; branches by their lowest operator."""
    children: list[Leaf | Parallel] = []
    for item in carried:
        if isinstance(item, int):
            children.append(Leaf(item))
        else:
            branches = sorted((_freeze(branch) for branch in item), key=lambda node: min(leaves(node)))
            children.append(Parallel(tuple(branch for branch in branches if not isinstance(branch, Parallel))))
    return children[0] if len(children) == 1 else Series(tuple(children))
