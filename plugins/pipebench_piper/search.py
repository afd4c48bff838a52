"""The smallest stage time over all partitions: bisection on a target, each answered by the kernel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.bottleneck import narrow_bottleneck
from pipebench.algorithms.downset_table import Words, cut_edges, downset_sums, node_sets
from pipebench.costs.quantise import IntArray
from pipebench_piper.cost_tables import CostTables, StageWay
from pipebench_piper.kernel import DownsetTables, StageTimeCache, crossing_bytes, reach, room_for, stage_choice
from pipebench_piper.knapsack import choose
from pipebench_piper.released_costs import crossing_s_for_a_byte

MOST_REMEMBERED = 1_000_000
"""Stage times kept between targets (24 bytes each), at most. Not near a power of two, of which keys are made."""


def tables_of(figures: CostTables, rows: Words, buffers: bool) -> DownsetTables:
    """The tables of a problem over its sets closed under successors, sorted by the work in them.

    rows: the sets by size (algorithms.downset_table of the reversed graph). buffers: whether stages have any.
    """
    ways = figures.ways
    each = [figures.of_way(way) for way in ways]
    widest = max(time.shape[1] for time, *_ in each)
    time, saved, fixed = (np.stack([_pad_columns(way[part], widest) for way in each]) for part in range(3))
    count = np.stack([way[3] for way in each])
    here = np.arange(widest) < count[:, :, None]
    devices = np.array([way.devices for way in ways], np.int64)
    fastest = np.argmin(np.where(here, time, np.inf), axis=2)[:, :, None]
    least = np.min(np.where(here, time, np.inf), axis=2)
    work = downset_sums(rows, np.min(least * devices[:, None], axis=0, initial=np.inf)[None, :])[0]
    sizes = downset_sums(rows, np.ones((1, figures.nodes)))[0]
    order = np.lexsort((sizes, work))
    rows, work = np.ascontiguousarray(rows[order]), work[order]

    def sums(values: np.ndarray) -> np.ndarray:
        return np.asarray(downset_sums(rows, np.ascontiguousarray(np.where(count > 0, values, 0.0))))

    def chosen(values: np.ndarray) -> np.ndarray:
        return sums(np.take_along_axis(values, fastest, axis=2)[:, :, 0])

    def smallest(values: np.ndarray) -> np.ndarray:
        return sums(np.min(np.where(here, values, np.inf), axis=2))

    degrees = list(figures.choices)
    ends = [tuple(_pad_columns(end, widest) for end in figures.crossing(degree)) for degree in degrees]
    edge_rows = cut_edges(rows, node_sets([tuple(edge) for edge in figures.edges], figures.nodes))
    into, out, both, uniform = [], [], [], []
    for position, degree in enumerate(degrees):
        there = np.array([len(offered) for offered in figures.choices[degree]], np.int64)
        least_in = _least(ends[position][0], there[figures.edges[:, 1]])
        least_out = _least(ends[position][1], there[figures.edges[:, 0]])
        uniform.append(
            _same(ends[position][0], there[figures.edges[:, 1]])
            and _same(ends[position][1], there[figures.edges[:, 0]])
        )
        cut = np.stack([least_in, least_out])
        crossing = _cut_sums(edge_rows, cut)
        into.append(crossing[0])
        out.append(crossing[1])
        both.append(cut.sum(axis=0))
    sent = figures.exchanged if buffers else {}
    ends_of, values = node_sets(list(sent), figures.nodes), np.array(list(sent.values()), np.float64)
    sent_cut = cut_edges(rows, ends_of)
    where = [degrees.index(way.tensor_parallel) for way in ways]
    price = [crossing_s_for_a_byte(way.data_parallel, figures.bandwidth) for way in ways]
    return DownsetTables(
        rows=rows,
        work=work,
        cut=edge_rows,
        devices=devices,
        turns=np.array([way.turns for way in ways], np.int64),
        degree=np.array(where, np.int64),
        price=np.array(price),
        time=time,
        saved=saved,
        fixed=fixed,
        every_once=np.array([float(figures.every_stage(way).once) for way in ways]),
        every_live=np.array([float(figures.every_stage(way).per_micro_batch) for way in ways]),
        offered=count,
        fast=chosen(time),
        fast_saved=chosen(saved),
        fast_fixed=chosen(fixed),
        least_saved=smallest(saved),
        least_fixed=smallest(fixed),
        lacking=np.asarray(downset_sums(rows, (count == 0).astype(np.float64))),
        into=np.stack(into),
        out=np.stack(out),
        both=np.stack(both),
        edges=figures.edges,
        into_each=np.stack([ends[position][0] for position in where]),
        out_each=np.stack([ends[position][1] for position in where]),
        uniform=np.array(uniform),
        ends=ends_of,
        sent=values,
        sent_cut=sent_cut,
        sent_sums=downset_sums(sent_cut, values[None, :])[0] if len(values) else np.zeros(len(rows)),
        buffered=np.array([figures.buffered_samples(way) for way in ways], np.float64),
    )


def empty_cache(tables: DownsetTables, most_in_flight: int) -> StageTimeCache:
    """A cache without any stage time, with room for a fourth of those that there may be.

    Most pairs of sets fit in every way, or in none, and ask for no time. An odd number of places: keys that
    differ in their upper bits only go to different ones.
    """
    sets = len(tables.work)
    each = int((most_in_flight // tables.turns + 1).sum())
    places = min(MOST_REMEMBERED, sets * sets * each // 8) | 1
    return StageTimeCache(np.full(places, -1, np.int64), np.zeros(places), np.zeros(places))


def _pad_columns(values: np.ndarray, widest: int) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, widest - values.shape[1])))


def _least(values: np.ndarray, count: np.ndarray) -> np.ndarray:
    here = np.arange(values.shape[1]) < np.maximum(count, 1)[:, None]
    return np.asarray(np.min(np.where(here, values, np.inf), axis=1))


def _same(values: np.ndarray, count: np.ndarray) -> bool:
    here = np.arange(values.shape[1]) < np.maximum(count, 1)[:, None]
    return bool(np.all(~here | (values == values[:, :1])))


def _cut_sums(cut: Words, values: np.ndarray) -> np.ndarray:
    """For each row of values (kinds, edges) and each downset the sum over the edges that it cuts."""
    if values.shape[1] == 0:
        return np.zeros((len(values), len(cut)))
    return np.asarray(downset_sums(cut, np.ascontiguousarray(values)))


ANY = 1e200
"""A target in seconds that every stage meets which fits."""
COUNTERS = ("pairs", "transitions", "knapsacks", "exact_knapsacks", "unproven_knapsacks")


@dataclass(frozen=True, slots=True)
class DownsetStage:
    """One stage: operators (positions, ascending), its way, alternative of each operator, units in flight.

    in_flight: the sum in flight from this stage on.
    """

    operators: tuple[int, ...]
    way: StageWay
    choice: tuple[int, ...]
    in_flight: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DownsetPartition:
    """The stages of a partition in topological order.

    seconds: the largest of their times.
    bound: no partition has a smaller one.
    stopped: the time was over.
    """

    parts: tuple[DownsetStage, ...]
    seconds: float
    bound: float
    proven: bool
    stopped: bool


class DownsetSearch:
    """One problem at one micro-batch size, over its downsets. buffers: whether stages have transfer buffers."""

    def __init__(self, figures: CostTables, rows: Words, exact: bool, buffers: bool) -> None:
        self.figures = figures
        self.exact = exact
        self.tables: DownsetTables = tables_of(figures, rows, buffers)
        sets, devices = len(self.tables.work), figures.problem.cluster.size
        self._flight = np.empty((sets, devices + 1), np.int64)
        self._link = np.zeros((sets, devices + 1, 3), np.int64)
        self.counters: IntArray = np.zeros(len(COUNTERS), np.int64)

    def best(
        self, limit_bytes: float, out_of_time: Callable[[], bool], one_stage: bool
    ) -> DownsetPartition | None:
        """The partition of the smallest stage time whose stages fit; None where none does.

        Out of time: the best so far, not proven.
        """
        memory = empty_cache(self.tables, self.figures.most_in_flight)

        def below(target: float) -> tuple[DownsetStage, ...] | None:
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
        first = self._first(low, below)
        if first is None:
            return None
        found = narrow_bottleneck(first, low, below, _slowest, out_of_time)
        proven = not found.stopped and not self.counters[COUNTERS.index("unproven_knapsacks")]
        return DownsetPartition(found.best, _slowest(found.best), found.refused, bool(proven), found.stopped)

    def _floor(self) -> float:
        """No stage time is smaller: all device-seconds shared out, and the slowest operator."""
        tables, figures = self.tables, self.figures
        here = np.arange(tables.time.shape[2]) < tables.offered[:, :, None]
        slowest = float(np.min(np.where(here, tables.time, np.inf), axis=(0, 2)).max())
        return max(float(tables.work[-1]) / figures.problem.cluster.size, slowest) * (1 - 1e-6)

    def _first(
        self, low: float, below: Callable[[float], tuple[DownsetStage, ...] | None]
    ) -> tuple[DownsetStage, ...] | None:
        """A partition of any stage time, tried at growing targets: a search is quick where the target is small."""
        target = low * 1.05
        for _ in range(8):
            parts = below(target)
            if parts is not None or target == 0:
                return parts if parts is not None else below(ANY)
            target *= 1.25
        return below(ANY)

    def _stages(self, limit_bytes: float) -> tuple[DownsetStage, ...]:
        tables, figures = self.tables, self.figures
        at, devices = len(tables.work) - 1, figures.problem.cluster.size
        parts = []
        while at > 0:
            total = int(self._flight[at, devices])
            behind, left, number = (int(value) for value in self._link[at, devices])
            way = figures.ways[number]
            members, time, saved, fixed, count = stage_choice(tables, at, behind, number)
            live = way.live(total)
            room = room_for(tables, number, live, crossing_bytes(tables, at, behind), limit_bytes)
            seconds, _, choice = choose(time, saved * live + fixed, count, room, self.exact)
            parts.append(
                DownsetStage(tuple(map(int, members)), way, tuple(map(int, choice)), total, float(seconds))
            )
            at, devices = behind, left
        return tuple(parts)


def _slowest(parts: tuple[DownsetStage, ...]) -> float:
    return max(part.seconds for part in parts)
