"""Downsets of a graph: all of them, or those that the released optimizer reaches."""

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.graph_orders import descendants, members
from pipebench.domain.errors import UnsupportedProblem


def count_downsets(successors: Sequence[Sequence[int]], limit: int | None = None) -> int:
    """How many downsets there are, the empty one and the whole graph included.

    Counted without listing them: the counts of unconnected parts multiply, and a connected part splits at a
    node into downsets with it and without it. limit: parts to look at, at most.

    Raises UnsupportedProblem when the limit is passed.
    """
    after = descendants(successors)
    before = _predecessors(after)
    related = [down | up for down, up in zip(after, before, strict=True)]
    known: dict[int, int] = {0: 1}

    def count(nodes: int) -> int:
        if nodes not in known:
            if limit is not None and len(known) > limit:
                raise UnsupportedProblem(f"counting the downsets takes more than {limit} parts")
            part = _component(nodes, related)
            if part != nodes:
                known[nodes] = count(part) * count(nodes & ~part)
            else:
                pivot = max(members(part), key=lambda node: _balance(part, after[node], before[node]))
                without = part & ~(after[pivot] | 1 << pivot)
                known[nodes] = count(without) + count(part & ~(before[pivot] | 1 << pivot))
        return known[nodes]

    return count((1 << len(successors)) - 1)


def list_downsets(successors: Sequence[Sequence[int]], limit: int) -> list[int]:
    """All downsets as bit sets, by size and then by value.

    Raises UnsupportedProblem when there are more than `limit`.
    """
    before = [0] * len(successors)
    for node, after in enumerate(successors):
        for successor in after:
            before[successor] |= 1 << node
    level = {0: sum(1 << node for node, needed in enumerate(before) if not needed)}
    listed: list[int] = []
    while level:
        listed += sorted(level)
        if len(listed) > limit:
            raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        larger: dict[int, int] = {}
        for downset, ready in level.items():
            for node in members(ready):
                grown = downset | 1 << node
                if grown not in larger:
                    fresh = sum(1 << after for after in set(successors[node]) if not before[after] & ~grown)
                    larger[grown] = ready & ~(1 << node) | fresh
            if len(listed) + len(larger) > limit:
                raise UnsupportedProblem(f"the graph has more than {limit} downsets")
        level = larger
    return listed


def _balance(part: int, after: int, before: int) -> tuple[int, int]:
    """Prefer the pivot that leaves both halves small."""
    down, up = (part & after).bit_count(), (part & before).bit_count()
    return min(down, up), down + up


def _component(nodes: int, related: Sequence[int]) -> int:
    """The part of `nodes` that is connected with the lowest of them."""
    part = fresh = nodes & -nodes
    while fresh:
        found = 0
        for node in members(fresh):
            found |= related[node]
        fresh = found & nodes & ~part
        part |= fresh
    return part


def _predecessors(after: Sequence[int]) -> list[int]:
    before = [0] * len(after)
    for node, reached in enumerate(after):
        for successor in members(reached):
            before[successor] |= 1 << node
    return before


def reached_downsets(successors: Sequence[Sequence[int]], limit: int) -> tuple[list[int], NDArray[np.bool_]]:
    """The downsets as bit sets, ascending by size, and which of them leads to which, shape (states, states).

    Raises UnsupportedProblem when there are more than `limit`.
    """
    walk = _Walk(successors)
    start = 1 << next(unit for unit in range(len(successors)) if not walk.ancestors[unit])
    leads: dict[int, set[int]] = {start: set()}
    waiting = deque([start])
    while waiting:
        antichain = waiting.popleft()
        for following in walk.following(antichain):
            leads[antichain].add(following)
            if following not in leads:
                if len(leads) >= limit:
                    raise UnsupportedProblem(f"the graph has more than {limit} antichains", "use branches=joined")
                leads[following] = set()
                waiting.append(following)
    ordered = sorted(leads, key=lambda antichain: (walk.closure(antichain).bit_count(), walk.closure(antichain)))
    place = {antichain: position for position, antichain in enumerate(ordered)}
    before = np.zeros((len(ordered), len(ordered)), dtype=np.bool_)
    for antichain in ordered:
        own = place[antichain]
        for following in leads[antichain]:
            before[:, place[following]] |= before[:, own]
            before[own, place[following]] = True
    return [walk.closure(antichain) for antichain in ordered], before


class _Walk:
    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self._successors = successors
        self._descendants = descendants(successors)
        self.ancestors = [0] * len(successors)
        for unit, after in enumerate(self._descendants):
            for other in members(after):
                self.ancestors[other] |= 1 << unit
        self._extra = [self._feeding_others(unit) for unit in range(len(successors))]

    def _feeding_others(self, unit: int) -> int:
        """Ancestors with a successor that is neither the unit nor an ancestor of it."""
        inside = self.ancestors[unit] | 1 << unit
        return sum(
            1 << ancestor
            for ancestor in members(self.ancestors[unit])
            if any(not inside >> successor & 1 for successor in self._successors[ancestor])
        )

    def closure(self, antichain: int) -> int:
        closed = antichain
        for unit in members(antichain):
            closed |= self.ancestors[unit]
        return closed

    def following(self, antichain: int) -> set[int]:
        """Antichains after one member, or one ancestor that feeds others, is replaced by one of its successors."""
        augmented = antichain
        for unit in members(antichain):
            augmented |= self._extra[unit]
        found: set[int] = set()
        for unit in members(augmented):
            for successor in self._successors[unit]:
                if antichain >> successor & 1 or self._descendants[successor] & augmented:
                    continue
                moved = augmented & ~(1 << unit) | 1 << successor
                found.add(sum(1 << kept for kept in members(moved) if not self._descendants[kept] & moved))
        return found
