"""Where a graph is not series-parallel: the smallest region with one way in and one way out, put in a line."""

from collections import deque
from collections.abc import Iterator, Sequence

from pipebench.algorithms.reachability import members
from pipebench.algorithms.sp_reduction import Sequence_, TwoTerminal, operators


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
