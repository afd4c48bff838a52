"""Parts of a stage that may go to another one: operators at its ends, halves of it, separate pieces."""

from collections.abc import Sequence
from functools import cache

from pipebench.algorithms.graph_orders import descendants, members, pieces

END_SHARES = 0.03, 0.06, 0.12, 0.25, 0.5
"""Of a stage's work, at its ends."""
HEAD_SHARES = 0.5, 0.25, 0.75
"""Of a stage's work, in its first half."""
SMALLEST = 3
"""So many of the sets at an end that have least work."""
MOST_PIECES = 32
"""Of a stage that has more, none is moved alone."""


class Pieces:
    """Of the stages of one graph. successors, work: of each operator. Stages are operators in topological order.

    ends, heads, components: see the methods that they remember.
    """

    def __init__(self, successors: Sequence[Sequence[int]], work: Sequence[int]) -> None:
        self._after, self._work = [set(readers) for readers in successors], work
        self._below = descendants(successors)
        self._above = [0] * len(self._below)
        for op, reached in enumerate(self._below):
            for other in members(reached):
                self._above[other] |= 1 << op
        self.ends = cache(self._ends)
        self.heads = cache(self._heads)
        self.components = cache(self._components)

    def _ends(self, operators: tuple[int, ...], first: bool) -> list[frozenset[int]]:
        """Some sets of operators at an end of a stage, by work: the smallest, and those near some shares of it."""
        closed = self._above if first else self._below
        inside = 0
        for op in operators:
            inside |= 1 << op
        found = {frozenset(members((closed[op] | 1 << op) & inside)) for op in operators}
        ordered = list(operators) if first else list(reversed(operators))
        found |= {frozenset(ordered[:count]) for count in range(1, len(ordered))}
        found.discard(frozenset(operators))
        if not found:
            return []
        total = sum(self._work[op] for op in operators)
        by_work = sorted((sum(self._work[op] for op in each), sorted(each)) for each in found)
        chosen = by_work[:SMALLEST]
        for share in END_SHARES:
            chosen.append(min(by_work, key=lambda each: (abs(each[0] - share * total), each[1])))
        return list(dict.fromkeys(frozenset(each) for _, each in chosen))

    def _heads(self, operators: tuple[int, ...]) -> list[frozenset[int]]:
        """First halves of a stage: runs of its order by work, and its largest branches."""
        total, done = sum(self._work[op] for op in operators), 0
        runs: list[tuple[int, frozenset[int]]] = []
        for count, op in enumerate(operators[:-1], start=1):
            done += self._work[op]
            runs.append((done, frozenset(operators[:count])))
        found = [min(runs, key=lambda run: abs(run[0] - share * total))[1] for share in HEAD_SHARES]
        apart = self.components(operators)
        if 1 < len(apart) <= MOST_PIECES:
            found += [frozenset(piece) for piece in apart]
            half = len(apart) // 2
            found.append(frozenset(op for piece in apart[:half] for op in piece))
        return list(dict.fromkeys(found))

    def _components(self, operators: tuple[int, ...]) -> list[set[int]]:
        """The parts of a stage between which no tensor flows."""
        place = {op: at for at, op in enumerate(operators)}
        flows = ((place[op], place[other]) for op in operators for other in self._after[op] & place.keys())
        return [{operators[at] for at in piece} for piece in pieces(len(operators), flows)]
