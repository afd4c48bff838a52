"""Is a set of nodes convex: does every path between two of its nodes stay inside?"""

from collections.abc import Sequence

from pipebench.algorithms.reachability import bit_set, descendants


class Convexity:
    """Convexity of node sets of one directed acyclic graph; each question costs one pass over its nodes."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        predecessors: list[list[int]] = [[] for _ in successors]
        for node, after in enumerate(successors):
            for successor in after:
                predecessors[successor].append(node)
        self._after = descendants(successors)
        self._before = descendants(predecessors)

    def leaves_and_returns(self, nodes: Sequence[int]) -> int:
        """The bit set of nodes outside that lie on a path between two of `nodes`; 0 when they are convex."""
        after = before = 0
        for node in nodes:
            after |= self._after[node]
            before |= self._before[node]
        return after & before & ~bit_set(nodes)

    def is_convex(self, nodes: Sequence[int]) -> bool:
        """Whether no path leaves the set and comes back (GraphPipe section 3, C1)."""
        return self.leaves_and_returns(nodes) == 0
