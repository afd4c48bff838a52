"""Which intervals of a linear order a tensor or parameter concerns, and their sums over all intervals.

An interval [i, j) holds the operators at places i … j-1 of the order, 0 <= i < j <= n. A tensor concerns the
intervals of a few rectangles of (i, j), so sums over all of them are a two-dimensional prefix sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray

Rectangle = tuple[int, int, int, int, int]
"""item, first i, last i, first j, last j (both ends included)."""


@dataclass(frozen=True, slots=True)
class IntervalSums:
    """Sums, for every interval, of the weights of the items that concern it."""

    places: int
    rectangles: tuple[Rectangle, ...]

    def of(self, weights: IntArray) -> IntArray:
        """Sums of shape (n + 1, n + 1), indexed [i, j], from weights of shape (items,)."""
        corners = np.zeros((self.places + 2, self.places + 2), dtype=np.int64)
        if self.rectangles:
            item, first_i, last_i, first_j, last_j = np.array(self.rectangles, dtype=np.int64).T
            amount = weights[item]
            np.add.at(corners, (first_i, first_j), amount)
            np.add.at(corners, (last_i + 1, first_j), -amount)
            np.add.at(corners, (first_i, last_j + 1), -amount)
            np.add.at(corners, (last_i + 1, last_j + 1), amount)
        sums: IntArray = corners.cumsum(axis=0).cumsum(axis=1)[: self.places + 1, : self.places + 1]
        return sums


def touching(places: int, uses: Sequence[Sequence[int]], after: Sequence[int]) -> IntervalSums:
    """Intervals that hold at least one of the ascending places `uses[item]` and start after place `after[item]`.

    A tensor received: its readers, after its producer. A parameter held: its operators, after -1.
    """
    rectangles: list[Rectangle] = []
    for item, used in enumerate(uses):
        previous = after[item]
        for place in used:
            rectangles.append((item, previous + 1, place, place + 1, places))
            previous = place
    return IntervalSums(places, tuple(rectangles))


def leaving(places: int, producers: Sequence[int], last_readers: Sequence[int]) -> IntervalSums:
    """Intervals that hold the producer of an item and end before its last reader."""
    return IntervalSums(
        places,
        tuple(
            (item, 0, producer, producer + 1, last)
            for item, (producer, last) in enumerate(zip(producers, last_readers, strict=True))
            if last > producer
        ),
    )


def cut_sums(places: int, producers: Sequence[int], last_readers: Sequence[int], weights: IntArray) -> IntArray:
    """For each cut c (before place c) the sum over items produced before it and read at or after it.

    weights: (items,). Returns shape (n + 1,); 0 at both ends.
    """
    steps = np.zeros(places + 2, dtype=np.int64)
    np.add.at(steps, np.asarray(producers, dtype=np.int64) + 1, weights)
    np.add.at(steps, np.asarray(last_readers, dtype=np.int64) + 1, -weights)
    sums: IntArray = steps.cumsum()[: places + 1]
    return sums
