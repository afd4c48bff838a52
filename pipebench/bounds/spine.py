"""Paths through a graph: the longest ones, and where every other operator stands beside one."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.graph import OperatorGraph

PLACED, SAVES, STARTED = 0, 1, 2
"""What a visit counts: an operator of the path with all that it has; of another operator what it saves with its
time, and the devices that hold it with what grows with them."""
KINDS = 3
Visit = tuple[int, int]
"""An operator and what is counted."""


@dataclass(frozen=True, slots=True)
class Spine:
    """operators: a path u_0, u_1, … up to an operator without successors.

    after: for each operator how many of the path, from its start, are all before it.
    before: for each operator the first of the path that is behind it; the length of the path where none is.
    """

    operators: tuple[int, ...]
    after: tuple[int, ...]
    before: tuple[int, ...]

    def visits(self, waits: bool) -> tuple[Visit, ...]:
        """Every operator in an order for sums along the path.

        waits: whether devices wait for their first operator. What an operator saves is counted before the first of
        the path behind it; devices that hold it are counted before the first of the path that is not before it.
        """
        path = set(self.operators)
        beside = [operator for operator in range(len(self.after)) if operator not in path]
        found: list[Visit] = []
        for place, here in enumerate((*self.operators, None)):
            found += [(operator, SAVES) for operator in beside if self.before[operator] == place]
            if waits:
                found += [(operator, STARTED) for operator in beside if self.after[operator] == place]
            found += [] if here is None else [(here, PLACED)]
        return tuple(found)


def spine_of(graph: OperatorGraph, lengths: list[int]) -> Spine:
    """The path with the largest sum of lengths, without operators that do not depend on the input.

    lengths: of each operator, not negative.
    """
    operators = range(len(graph.operators))
    longest, following = [0] * len(operators), [-1] * len(operators)
    for operator in reversed(graph.topological):
        for behind in graph.successors[operator]:
            if following[operator] < 0 or longest[behind] > longest[operator]:
                longest[operator], following[operator] = longest[behind], behind
        longest[operator] += lengths[operator]
    moving = [operator for operator in operators if not graph.operators[operator].constant]
    path: list[int] = []
    here = max(moving, key=lambda operator: longest[operator], default=-1)
    while here >= 0:
        path.append(here)
        here = following[here]
    place = {operator: at for at, operator in enumerate(path)}
    after, before = [0] * len(operators), [len(path)] * len(operators)
    for operator in graph.topological:
        for other in graph.predecessors[operator]:
            after[operator] = max(after[operator], after[other], place.get(other, -1) + 1)
    for operator in reversed(graph.topological):
        for other in graph.successors[operator]:
            before[operator] = min(before[operator], before[other], place.get(other, len(path)))
    return Spine(tuple(path), tuple(after), tuple(before))


def before_each(graph: OperatorGraph, lengths: IntArray, first: IntArray | None = None) -> IntArray:
    """For each operator the longest sum of lengths along a path to it, itself left out.

    first: lengths of an operator that is the first of its path; not less than its others.
    """
    above = [0] * len(lengths)
    each, alone = lengths.tolist(), (lengths if first is None else first).tolist()
    for operator in graph.topological:
        for before in graph.predecessors[operator]:
            above[operator] = max(above[operator], above[before] + each[before], alone[before])
    return np.array(above, dtype=np.int64)
