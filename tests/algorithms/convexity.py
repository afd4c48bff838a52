"""Is a set of nodes convex: does every path between two of its nodes stay inside? By networkx."""

from collections.abc import Sequence

import networkx as nx


class Convexity:
    """Convexity of sets of nodes of one directed acyclic graph."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        closure = nx.transitive_closure_dag(
            nx.DiGraph({node: list(after) for node, after in enumerate(successors)})
        )
        self._after = {node: set(closure.successors(node)) for node in closure}
        self._before = {node: set(closure.predecessors(node)) for node in closure}

    def is_convex(self, nodes: Sequence[int]) -> bool:
        """Whether no path leaves the set and comes back (GraphPipe section 3, C1)."""
        after = set[int]().union(*(self._after[node] for node in nodes))
        before = set[int]().union(*(self._before[node] for node in nodes))
        return not after & before - set(nodes)
