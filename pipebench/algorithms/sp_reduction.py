"""Worklist reduction of a graph with two terminals to one edge (Valdes, Tarjan and Lawler 1982, section 3).

An edge carries what lies on it: a sequence of operators and of bundles of parallel sequences. An empty sequence is
a plain precedence.
"""

from collections import deque

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
    def done(self) -> bool:
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
