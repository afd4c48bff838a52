"""In which order vertices are eliminated, and how large the tables become."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

Ordering = Literal["generate-seq", "breadth-first", "min-fill"]
Adjacency = Sequence[frozenset[int]]


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """The order in which vertices are eliminated.

    order: the vertices.
    dependent: for each vertex in that order, its dependent set (PaSE, section III-B).
    """

    order: tuple[int, ...]
    dependent: tuple[tuple[int, ...], ...]

    @property
    def largest_dependent_set(self) -> int:
        """M of the paper."""
        return max(map(len, self.dependent), default=0)

    def table_sizes(self, configurations: Sequence[int]) -> list[int]:
        """Combinations analysed for each vertex: its own configurations times those of its dependent set."""
        return [
            configurations[vertex] * prod(configurations[v] for v in dependent)
            for vertex, dependent in zip(self.order, self.dependent, strict=True)
        ]


def elimination_order(adjacency: Adjacency, ordering: Ordering) -> EliminationOrder:
    """The vertices in the order of this rule.

    generate-seq: the fewest dependent vertices first (PaSE, figure 3), the first of equals. min-fill: the one that
    joins the fewest pairs. breadth-first: as recurrence 2 has it, from the first vertex of each component, edges
    taken both ways.
    """
    if ordering == "breadth-first":
        return in_order(adjacency, _breadth_first(adjacency))
    weigh = _pairs_to_join if ordering == "min-fill" else _dependent
    near = [set(each) for each in adjacency]
    left = set(range(len(near)))
    weights = {vertex: weigh(near, vertex) for vertex in left}
    order, dependent = [], []
    while left:
        vertex = min(left, key=lambda v: (weights[v], v))
        left.remove(vertex)
        order.append(vertex)
        dependent.append(tuple(sorted(near[vertex])))
        changed = _eliminate(near, vertex)
        if ordering == "min-fill":
            changed = changed.union(*(near[v] for v in changed))
        for v in changed:
            weights[v] = weigh(near, v)
    return EliminationOrder(tuple(order), tuple(dependent))


def in_order(adjacency: Adjacency, order: Sequence[int]) -> EliminationOrder:
    """The dependent sets of vertices eliminated in this order."""
    near = [set(each) for each in adjacency]
    dependent = []
    for vertex in order:
        dependent.append(tuple(sorted(near[vertex])))
        _eliminate(near, vertex)
    return EliminationOrder(tuple(order), tuple(dependent))


def _eliminate(near: list[set[int]], vertex: int) -> set[int]:
    """Join the neighbours of a vertex and take it out; the neighbours."""
    around = near[vertex]
    for v in around:
        near[v] |= around
        near[v] -= {v, vertex}
    near[vertex] = set()
    return set(around)


def _dependent(near: list[set[int]], vertex: int) -> int:
    return len(near[vertex])


def _pairs_to_join(near: list[set[int]], vertex: int) -> int:
    around = sorted(near[vertex])
    return sum(b not in near[a] for position, a in enumerate(around) for b in around[position + 1 :])


def _breadth_first(adjacency: Adjacency) -> list[int]:
    found: list[int] = []
    seen: set[int] = set()
    for start in range(len(adjacency)):
        if start in seen:
            continue
        seen.add(start)
        queue = [start]
        for vertex in queue:
            new = sorted(adjacency[vertex] - seen)
            seen.update(new)
            queue += new
        found += queue
    return found
