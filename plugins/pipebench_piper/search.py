"""The smallest stage time over all partitions: bisection on a target, each answered by the kernel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.downset_table import Words
from pipebench.costs.quantise import IntArray
from pipebench_piper.figures import Figures, Way
from pipebench_piper.kernel import Tables, reach, room_for, stage_choice
from pipebench_piper.knapsack import choose
from pipebench_piper.tables import empty_memory, tables_of

PRECISION = 1e-9
"""Relative distance of the target that was proven out of reach from the time that was reached."""
ANY = 1e200
"""A target in seconds that every stage meets which fits."""
COUNTERS = ("pairs", "transitions", "knapsacks", "exact_knapsacks", "unproven_knapsacks")


@dataclass(frozen=True, slots=True)
class Part:
    """One stage: operators (positions, ascending), its way, alternative of each operator, units in flight.

    in_flight: the sum in flight from this stage on.
    """

    operators: tuple[int, ...]
    way: Way
    choice: tuple[int, ...]
    in_flight: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Partition:
    """The stages in topological order; the largest of their times; a time that none is proven to
    reach. stopped: out of time."""

    parts: tuple[Part, ...]
    seconds: float
    bound: float
    proven: bool
    stopped: bool


class Search:
    """One problem at one micro-batch size, over its downsets."""

    def __init__(self, figures: Figures, rows: Words, exact: bool) -> None:
        self.figures = figures
        self.exact = exact
        self.tables: Tables = tables_of(figures, rows)
        sets, devices = len(self.tables.work), figures.problem.cluster.size
        self._flight = np.empty((sets, devices + 1), np.int64)
        self._link = np.zeros((sets, devices + 1, 3), np.int64)
        self.counters: IntArray = np.zeros(len(COUNTERS), np.int64)

    def best(self, limit_bytes: float, out_of_time: Callable[[], bool], one_stage: bool) -> Partition | None:
        """The partition of the smallest stage time whose stages fit; None where none does.

        The lower end of the bisection is refused, the upper one reached by a partition; it ends when they
        are PRECISION apart. Out of time: the best so far, not proven.
        """
        memory = empty_memory()

        def below(target: float) -> tuple[Part, ...] | None:
            found = reach(
                self.tables,
                memory,
                target,
                limit_bytes,
                self.figures.most_in_flight,
                self.exact,
                int(one_stage),
                self._flight,
                self._link,
                self.counters,
            )
            return self._stages(limit_bytes) if found else None

        low = self._floor()
        parts = self._first(low, below)
        if parts is None:
            return None
        high = _slowest(parts)
        descend = False
        while low < high * (1 - PRECISION):
            if out_of_time():
                return Partition(parts, _slowest(parts), low, False, True)
            # Close to the end most targets are refused: first ask for anything better at all.
            target = high * (1 - PRECISION) if descend else max(low, (low + high) / 2)
            better = below(target)
            if better is None:
                low, descend = target, False
            else:
                parts, high = better, min(target, _slowest(better))
                descend = high - low < high / 50
        proven = not self.counters[COUNTERS.index("unproven_knapsacks")]
        return Partition(parts, _slowest(parts), low, bool(proven), False)

    def _floor(self) -> float:
        """No stage time is smaller: all device-seconds shared out, and the slowest operator."""
        tables, figures = self.tables, self.figures
        here = np.arange(tables.time.shape[2]) < tables.offered[:, :, None]
        slowest = float(np.min(np.where(here, tables.time, np.inf), axis=(0, 2)).max())
        return max(float(tables.work[-1]) / figures.problem.cluster.size, slowest) * (1 - 1e-6)

    def _first(self, low: float, below: Callable[[float], tuple[Part, ...] | None]) -> tuple[Part, ...] | None:
        """A partition of any stage time, tried at growing targets: a search is quick where the target is small."""
        target = low * 1.05
        for _ in range(8):
            parts = below(target)
            if parts is not None or target == 0:
                return parts if parts is not None else below(ANY)
            target *= 1.25
        return below(ANY)

    def _stages(self, limit_bytes: float) -> tuple[Part, ...]:
        tables, figures = self.tables, self.figures
        at, devices = len(tables.work) - 1, figures.problem.cluster.size
        parts = []
        while at > 0:
            total = int(self._flight[at, devices])
            behind, left, number = (int(value) for value in self._link[at, devices])
            way = figures.ways[number]
            members, time, saved, fixed, count = stage_choice(tables, at, behind, number)
            live = -(-total // way.share)
            room = room_for(tables, number, live, limit_bytes)
            seconds, _, choice = choose(time, saved * live + fixed, count, room, self.exact)
            parts.append(Part(tuple(map(int, members)), way, tuple(map(int, choice)), total, float(seconds)))
            at, devices = behind, left
        return tuple(parts)


def _slowest(parts: tuple[Part, ...]) -> float:
    return max(part.seconds for part in parts)
