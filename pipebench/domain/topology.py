"""Topological order of a small graph given as successor lists, and the cycle when there is none."""

import heapq
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

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
        cycle = _one_cycle(successors)
        raise InvalidValue("cycle: " + _spell_cycle([names[node] for node in [*cycle, cycle[0]]]))
    return tuple(order)


def _one_cycle(successors: Sequence[Sequence[int]]) -> list[int]:
    """One cycle of a graph that has some, in edge order from its smallest node."""
    try:
        TopologicalSorter(dict(enumerate(successors))).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1][:0:-1]  # the library's edges lead backwards; its last node is its first
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _spell_cycle(names: list[str]) -> str:
    """The names in order; of a long cycle the first and last few."""
    if len(names) > MOST_SPELLED:
        names = [*names[: MOST_SPELLED - 2], f"… ({len(names) - MOST_SPELLED} more)", *names[-2:]]
    return " -> ".join(names)
