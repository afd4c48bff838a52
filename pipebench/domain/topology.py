"""Topological order of a small graph given as successor lists, and the cycle when there is none."""

import heapq
from collections.abc import Sequence

from pipebench.domain.errors import InvalidValue

MOST_SPELLED = 10


def topological_order(successors: Sequence[Sequence[int]], names: Sequence[str]) -> tuple[int, ...]:
    """The lexicographically smallest topological order.

    Raises InvalidValue that spells out one cycle by name.
    """
    missing = [0] * len(successors)
    for after in successors:
        for node in after:
            missing[node] += 1
    ready = [node for node, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for successor in successors[node]:
            missing[successor] -= 1
            if missing[successor] == 0:
                heapq.heappush(ready, successor)
    if len(order) < len(successors):
        cycle = find_cycle(successors, {node for node, count in enumerate(missing) if count > 0})
        raise InvalidValue("cycle: " + _spelled([names[node] for node in [*cycle, cycle[0]]]))
    return tuple(order)


def find_cycle(successors: Sequence[Sequence[int]], among: set[int]) -> list[int]:
    """One cycle among nodes that could not be ordered, in edge order from its smallest node."""
    predecessors: dict[int, int] = {}
    for node in sorted(among):
        for successor in successors[node]:
            if successor in among:
                predecessors.setdefault(successor, node)
    node = next(iter(sorted(predecessors)))
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        node = predecessors[node]
    cycle = list(seen)[seen[node] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _spelled(names: list[str]) -> str:
    """The names in order; of a long cycle the first and last few."""
    if len(names) > MOST_SPELLED:
        names = [*names[: MOST_SPELLED - 2], f"… ({len(names) - MOST_SPELLED} more)", *names[-2:]]
    return " -> ".join(names)
