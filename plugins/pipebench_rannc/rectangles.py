"""Tables over all runs of consecutive blocks [i, j), filled by rectangles of (i, j)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Each adds an amount to all runs with low <= i <= high and from <= j <= to. Arrays of one length."""

    low: IntArray
    high: IntArray
    start: IntArray
    end: IntArray
    thing: IntArray

    def table(self, amounts: IntArray, blocks: int) -> IntArray:
        """Sums by run, shape (blocks + 1, blocks + 1), [i, j]. amounts: of each thing."""
        found = np.zeros((blocks + 2, blocks + 2), np.int64)
        each = amounts[self.thing]
        np.add.at(found, (self.low, self.start), each)
        np.add.at(found, (self.high + 1, self.start), -each)
        np.add.at(found, (self.low, self.end + 1), -each)
        np.add.at(found, (self.high + 1, self.end + 1), each)
        summed: IntArray = found.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
        return np.ascontiguousarray(summed)


def rectangles(found: Sequence[tuple[int, int, int, int, int]]) -> Rectangles:
    """From tuples (low, high, start, end, thing); empty ones are left out."""
    kept = [each for each in found if each[0] <= each[1] and each[2] <= each[3]]
    columns = np.array(kept, np.int64).reshape(-1, 5).T
    return Rectangles(*(np.ascontiguousarray(column) for column in columns))


def held_once(holders: Sequence[Sequence[int]], blocks: int, after: Sequence[int] | None = None) -> Rectangles:
    """Things that count once in each run that has one of their holders.

    holders: for each thing the blocks that hold it, ascending. after: a block for each thing; only runs that
    begin behind it count (a tensor is received from its producer), None: all.
    """
    found = []
    for thing, at in enumerate(holders):
        previous = -1 if after is None else after[thing]
        for block in at:
            found.append((previous + 1, block, block + 1, blocks, thing))
            previous = max(previous, block)
    return rectangles(found)


def leaving(made: Sequence[int], last: Sequence[int]) -> Rectangles:
    """Things made in a block and read last in another count in the runs that hold the first and not the second."""
    return rectangles(
        [
            (0, block, block + 1, reader, thing)
            for thing, (block, reader) in enumerate(zip(made, last, strict=True))
        ]
    )
