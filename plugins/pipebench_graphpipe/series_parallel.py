"""Series-parallel decomposition of an operator graph (Valdes, Tarjan and Lawler 1982)."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.algorithms.graph_orders import members, transitive_reduction


@dataclass(frozen=True, slots=True)
class LeafNode:
    """One operator."""

    operator: int


@dataclass(frozen=True, slots=True)
class SeriesNode:
    """Two or more parts, each after the one before it; none is a Series itself."""

    children: "tuple[LeafNode | ParallelNode, ...]"


@dataclass(frozen=True, slots=True)
class ParallelNode:
    """Two or more branches between the same points; none is a Parallel itself."""

    children: tuple[LeafNode | SeriesNode, ...]


Node = LeafNode | SeriesNode | ParallelNode


def leaves(node: Node) -> Iterator[int]:
    """Operators from left to right: a topological order."""
    stack: list[Node] = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, LeafNode):
            yield top.operator
        else:
            stack.extend(reversed(top.children))


def parts(node: Node) -> tuple[LeafNode | ParallelNode, ...]:
    """The parts of a Series; a Leaf or a Parallel is the only part of itself."""
    return node.children if isinstance(node, SeriesNode) else (node,)


Sequence_ = deque["int | list[Sequence_]"]
"""What an edge carries, in order: operators, and lists of parallel sequences."""


class TwoTerminal:
    """A multigraph between `source` and `sink` under reduction; parallel edges are merged as they appear."""

    def __init__(self, vertices: int, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.out: list[dict[int, Sequence_]] = [{} for _ in range(vertices)]
        self.into: list[set[int]] = [set() for _ in range(vertices)]
        self._work: deque[int] = deque()

    def add(self, tail: int, head: int, carried: Sequence_) -> None:
        """An edge; next to one that is there already it becomes a branch, and an empty branch vanishes."""
        present = self.out[tail].get(head)
        self.out[tail][head] = carried if present is None else _beside(present, carried)
        self.into[head].add(tail)
        self._work.extend((tail, head))

    def take(self, tail: int, head: int) -> Sequence_:
        """Remove an edge; what it carried."""
        self.into[head].remove(tail)
        return self.out[tail].pop(head)

    def reduce(self) -> None:
        """Take out every vertex with one edge in and one edge out until there is none."""
        while self._work:
            vertex = self._work.popleft()
            if len(self.into[vertex]) != 1 or len(self.out[vertex]) != 1:
                continue
            (tail,), (head,) = self.into[vertex], self.out[vertex]
            first = self.take(tail, vertex)
            self.add(tail, head, _behind(first, self.take(vertex, head)))

    @property
    def is_one_edge(self) -> bool:
        """Whether one edge is left."""
        return self.out[self.source].keys() == {self.sink} and self.into[self.sink] == {self.source}

    def vertices(self) -> list[int]:
        """Vertices that still have edges, in a topological order."""
        missing = [len(tails) for tails in self.into]
        order, ready = [], [self.source]
        while ready:
            vertex = ready.pop()
            order.append(vertex)
            for head in self.out[vertex]:
                missing[head] -= 1
                if missing[head] == 0:
                    ready.append(head)
        return order


def _behind(first: Sequence_, second: Sequence_) -> Sequence_:
    """One after the other; the longer one is extended."""
    if len(first) >= len(second):
        first.extend(second)
        return first
    second.extendleft(reversed(first))
    return second


def _beside(one: Sequence_, other: Sequence_) -> Sequence_:
    if not one or not other:
        return one or other
    return deque([_branches(one) + _branches(other)])


def _branches(carried: Sequence_) -> list[Sequence_]:
    """The branches of a bundle that stands alone; else the sequence as the only branch."""
    only = carried[0]
    return only if len(carried) == 1 and isinstance(only, list) else [carried]


def operators(carried: Sequence_) -> list[int]:
    """All operators of a sequence, from left to right."""
    found: list[int] = []
    stack: list[int | list[Sequence_] | Sequence_] = [carried]
    while stack:
        item = stack.pop()
        if isinstance(item, int):
            found.append(item)
        else:
            stack.extend(reversed(item))
    return found


def linearise_smallest_region(graph: TwoTerminal) -> list[int]:
    """Replace the offending region of fewest operators by a line; its operators, in that order.

    `graph` is reduced and more than one edge. A region lies between a vertex and its nearest post-dominator
    that it dominates itself, so that no other edge leads in or out. A line only adds precedences: every plan
    for it is a plan for the graph. Branches follow one another; what an edge carries stays together.
    """
    order = graph.vertices()
    before = _dominators(order, graph.into)
    after = _dominators(order[::-1], [list(heads) for heads in graph.out])
    place = {vertex: at for at, vertex in enumerate(order)}
    smallest: tuple[int, int, int, int] | None = None
    for entry in order:
        if len(graph.out[entry]) < 2:
            continue
        exits = [v for v in members(after[entry]) if v != entry and before[v] >> entry & 1]
        if not exits:
            continue
        leave = min(exits, key=place.__getitem__)
        inside = _inside(order, before, after, entry, leave)
        carried = sum(len(operators(graph.out[tail][head])) for tail, head in _edges(graph, inside | {entry}))
        if smallest is None or (carried, place[entry]) < smallest[:2]:
            smallest = (carried, place[entry], entry, leave)
    assert smallest is not None
    _, _, entry, leave = smallest
    return _replace(graph, entry, leave, _inside(order, before, after, entry, leave))


def _dominators(order: Sequence[int], before: Sequence[Sequence[int] | set[int]]) -> dict[int, int]:
    """For each vertex the bit set of vertices on every path to it from order[0], itself included."""
    found: dict[int, int] = {}
    for vertex in order:
        common = -1
        for tail in before[vertex]:
            common &= found[tail]
        found[vertex] = (0 if common == -1 else common) | 1 << vertex
    return found


def _inside(
    order: Sequence[int], before: dict[int, int], after: dict[int, int], entry: int, leave: int
) -> set[int]:
    return {v for v in order if v not in (entry, leave) and before[v] >> entry & 1 and after[v] >> leave & 1}


def _edges(graph: TwoTerminal, tails: set[int]) -> Iterator[tuple[int, int]]:
    for tail in tails:
        for head in graph.out[tail]:
            yield tail, head


def _replace(graph: TwoTerminal, entry: int, leave: int, inside: set[int]) -> list[int]:
    """Take the region's edges in depth-first order, each when all edges into its tail are taken."""
    waiting = {vertex: len(graph.into[vertex]) for vertex in inside}
    ready = _by_first_operator(graph, entry)
    line: Sequence_ = deque()
    while ready:
        tail, head = ready.pop()
        line.extend(graph.take(tail, head))
        if head != leave:
            waiting[head] -= 1
            if waiting[head] == 0:
                ready += _by_first_operator(graph, head)
    placed = operators(line)
    graph.add(entry, leave, line)
    return placed


def _by_first_operator(graph: TwoTerminal, tail: int) -> list[tuple[int, int]]:
    """Edges out of a vertex, the one that carries the lowest operator last; plain precedences before all."""
    edges = graph.out[tail]
    return sorted(((tail, head) for head in edges), key=lambda edge: -min(operators(edges[edge[1]]), default=-1))


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
    while not graph.is_one_edge:
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
    children: list[LeafNode | ParallelNode] = []
    for item in carried:
        if isinstance(item, int):
            children.append(LeafNode(item))
        else:
            branches = sorted((_freeze(branch) for branch in item), key=lambda node: min(leaves(node)))
            children.append(
                ParallelNode(tuple(branch for branch in branches if not isinstance(branch, ParallelNode)))
            )
    return children[0] if len(children) == 1 else SeriesNode(tuple(children))
