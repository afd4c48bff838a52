"""Simulated annealing of rows of stages (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983)."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.orders.tables import ANY
from pipebench.costs.quantise import IntArray
from pipebench_search.line.kernel import MODULUS, Shares, annealed, look
from pipebench_search.line.tables import Line

HOT, COLD = 0.02, 0.0003
"""By such a share a plan may take longer to be gone on from with a chance of 1/e: at first, and in the end."""
ANYWHERE: Shares = (0.35, 0.47, 0.59, 0.71, 0.76, 0.82, 0.94, 1.0)
PLACED: Shares = (0.5, 0.5, 0.5, 0.5, 0.6, 0.8, 1.0, 1.0)
"""Moves where stages may be on any lane; and where each lane keeps as many as it has."""
ANYWHERE_STEADY: Shares = (0.4, 0.56, 0.7, 0.83, 0.88, 0.94, 0.94, 1.0)
PLACED_STEADY: Shares = (0.6, 0.6, 0.6, 0.6, 0.7, 1.0, 1.0, 1.0)
"""The same without a flush, where nothing says what is kept in flight."""
SPREAD = 24
"""A cut moves by one part in so many of all operators, on average."""
MOST_STAGES = 64
"""Or twice as many as a plan has at first."""
SLICE, SLICE_S = 32, 0.1
"""Looks between two looks at the time at first; twice as many as long as they take less than this, in seconds."""


@dataclass(frozen=True, slots=True)
class Row:
    """Stages in a row, and what a mini-batch takes in greedy order. stages: see `Line.stages`."""

    stages: IntArray
    ns: int


class Annealing:
    """Of one line. seed: of random numbers."""

    def __init__(self, line: Line, seed: int) -> None:
        self._line, self._split = line, line.splits
        self._random = np.array([1 + seed % (MODULUS - 1)], np.int64)
        self._spread = max(1.0, len(line.order) / SPREAD)
        steady, placed = bool(line.costs.steady), line.placed
        self._shares = ((ANYWHERE, PLACED), (ANYWHERE_STEADY, PLACED_STEADY))[steady][placed]

    def ns(self, stages: IntArray, most_ns: int = ANY - 1) -> int | None:
        """What rows of stages take; None where they do not fit in memory, or take longer."""
        ns = look(self._line.costs, stages, self._split, most_ns)
        return None if ns == ANY else int(ns)

    def cycle(self, start: IntArray, looks: int, late: Callable[[], bool], looked: Callable[[int], None]) -> Row:
        """The fastest of so many neighbours, ever colder. start: rows that fit in memory.

        late: whether to end. looked: told how many looks were taken.
        """
        ns = self.ns(start)
        assert ns is not None
        most = max(MOST_STAGES, 2 * len(start))
        here = lowest = start
        here_ns = lowest_ns = ns
        done, some = 0, SLICE
        while done < looks and not late():
            began_s, end = time.monotonic(), min(looks, done + some)
            here, here_ns, lowest, lowest_ns = annealed(
                self._line.costs, here, here_ns, lowest, lowest_ns, self._split, (done, end, looks),
                (HOT, COLD), self._shares, self._spread, most, self._random,
            )  # fmt: skip
            looked(end - done)
            done = end
            if time.monotonic() - began_s < SLICE_S:
                some *= 2
        return Row(lowest, int(lowest_ns))
