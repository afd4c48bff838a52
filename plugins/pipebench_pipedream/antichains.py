"""The states that the released optimizer reaches: it starts at the first source and moves along edges.

Every source but the first, and what only they feed, joins a state when a successor is reached; a cut between
sources that the walk does not pass is never seen (GNMT: 99 of 562 states).
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.reachability import descendants, members
from pipebench.domain.errors import UnsupportedProblem


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
