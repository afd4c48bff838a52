"""The shortest cycle of a small directed graph."""

from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter


def shortest_cycle(successors: Sequence[Collection[int]]) -> list[int]:
    """The nodes of a shortest cycle in edge order, starting with its smallest; empty when there is none.

    Of several shortest cycles the one whose smallest node is smallest. networkx is imported only for a graph with
    a cycle: valid plans and schedules never pay for it.
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
