"""Greedy orders of a plan: whenever a lane is free, it runs what it can start first and has room for.

No lane runs a forward that would leave too little room for its oldest micro-batch in all of its stages. So this
one can always go on: no order stands still for memory, and where one micro-batch in each stage fits, every order
does (Dijkstra's banker's algorithm, EWD 108).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pipebench.algorithms.orders.greedy_kernel import run
from pipebench.algorithms.orders.tables import ANY, Tables
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT

Order = list[tuple[str, int, int]]
"""Tasks of one lane: (kind, stage, micro-batch)."""


class GreedyOrder:
    """The order with these most micro-batches in flight, by stage. split: weight gradients are tasks.

    It leaves the reserve free where one micro-batch in each stage does, else it fits in memory where they do, else
    it takes any.
    below: the rank of another order of these tables. This one is left (`complete` is False) as soon as it is seen
    not to be below that.
    orders: by lane. peak_bytes: by lane. Raises UnsupportedProblem where stages wait for each other in a circle.
    """

    def __init__(self, tables: Tables, caps: list[int], split: bool, below: tuple[int, int] | None = None) -> None:
        self._tables, self._split = tables, split
        most_bytes, most_ns = [ANY] * len(tables.held), ANY
        if below is not None and below[0] < len(tables.limits[0]):
            most_bytes = [limits[below[0]] for limits in tables.limits]
            most_ns = below[1] - 1 if below[0] == 0 else ANY
        stages, count, kinds = len(tables.forward), tables.count, 3 if split else 2
        lanes = len(tables.held)
        self._tasks = np.zeros((kinds * stages * count, 3), np.int64)
        self._free = np.zeros(lanes, np.int64)
        peak = np.array(tables.held, np.int64)
        ran = run(
            self._tasks,
            self._free,
            peak,
            np.array(tables.room, np.int64),
            np.array(most_bytes, np.int64),
            most_ns,
            count,
            np.array(caps, np.int64),
            tables.durations(split),
            tables.lanes,
            tables.memory,
            tables.waits,
        )
        self.complete = ran == len(self._tasks)
        if not self.complete and below is None:  # the oldest micro-batch could go on
            raise UnsupportedProblem("the stages of this plan wait for each other in a circle")
        self.peak_bytes: list[int] = peak.tolist()

    @property
    def orders(self) -> list[Order]:
        """The tasks of each lane."""
        back = INPUT_GRADIENT if self._split else BACKWARD
        names = np.array([back, FORWARD, WEIGHT_GRADIENT])
        lane = self._tables.lanes[self._tasks[:, 1]]
        kind, stage, number = self._tasks[np.argsort(lane, kind="stable")].T
        rows = list(zip(names[kind].tolist(), stage.tolist(), number.tolist(), strict=True))
        ends = np.cumsum(np.bincount(lane, minlength=len(self._tables.held))).tolist()
        return [rows[first:end] for first, end in pairwise([0, *ends])]

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better: within the reserve, within memory, beyond it; then by time, beyond it by excess."""
        tables, peaks = self._tables, self.peak_bytes
        for number in range(len(tables.limits[0])):
            if all(peak <= limits[number] for peak, limits in zip(peaks, tables.limits, strict=True)):
                return number, self.makespan_ns
        excess = max(peak - limits[-1] for peak, limits in zip(peaks, tables.limits, strict=True))
        return len(tables.limits[0]), excess

    @property
    def makespan_ns(self) -> int:
        """When all tasks and all-reduces have ended."""
        ends: list[int] = self._free.tolist()
        for lane, reduce in zip(self._tables.lane_of, self._tables.reduce, strict=True):
            ends[lane] += reduce
        return max(ends)


def best_order(
    tables: Tables, tried: Sequence[tuple[list[int], bool]], below: tuple[int, int] | None = None
) -> GreedyOrder:
    """Of some orders, at least one, the one that ranks best, and of equal ones the first.

    tried: micro-batches in flight of each stage, and whether weight gradients are tasks (`GreedyOrder`).
    below: a rank. Where none is below that, the order may be one that is not complete.
    Raises UnsupportedProblem as `GreedyOrder` does.
    """
    best = GreedyOrder(tables, *tried[0], below)
    for caps, split in tried[1:]:
        rank = best.rank if best.complete else below
        order = GreedyOrder(tables, caps, split, rank)
        if order.complete and (rank is None or order.rank < rank):
            best = order
    return best
