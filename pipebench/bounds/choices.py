"""What each way and cut of an operator costs in every resource that a plan shares out, as whole numbers.

Each figure is at most the operator's share of what a plan really spends, and shares of different operators add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.bounds.memory import (
    ELEMENT,
    ancestors_of_last,
    parameter_bytes_counted,
    state_of_ways,
    state_on_a_device,
)
from pipebench.bounds.operators import (
    Cut,
    Ways,
    busy_ns,
    cuts,
    least_parts,
    most_replicas,
    ways,
)
from pipebench.costs.formula import Formula, Holdings
from pipebench.costs.quantise import FloatArray, IntArray, whole_bytes
from pipebench.costs.rings import fastest_ring
from pipebench.costs.weights import state_bytes, update_ns
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Problem

COLUMNS = (
    "devices",
    "compute_ns",
    "crossing_ns",
    "update_ns",
    "forward_ns",
    "round_ns",
    "state_bytes",
    "saved_bytes",
    "own_byte_ns",
    "live_bytes",
)
"""What a row of a table of choices says.

devices: the most that hold the operator; alone of all columns it is good for a plan where it is large.
compute_ns: device time of all forwards and backwards of a mini-batch.
crossing_ns: the same without weight gradients, which may run at any time.
update_ns: device time of what adds up over operators of the all-reduce and of the optimizer.
forward_ns, round_ns: of one micro-batch, its forward, and its forward and input gradient.
state_bytes: what the devices together hold at all times.
saved_bytes: what is saved for all micro-batches of a mini-batch together, each from its forward to its backward; 0
where the stage recomputes.
own_byte_ns: saved bytes and workspace, times ns, while the operator's own tasks run. Where the stage recomputes,
two of these that run at once have one full set of saved bytes.
live_bytes: what is saved of the micro-batch whose forward ends in the last operator; 0 where that is not behind.
"""
DEVICES, COMPUTE, CROSSING, UPDATE, FORWARD, ROUND, STATE, SAVED, OWN, LIVE = range(len(COLUMNS))
MOST_ROWS = 60_000
"""Where ways times cuts are more, similar cuts are joined: together they cost the least that one of them does."""
EXACT = 2**53
"""Whole numbers below it are exact as floats."""
LOSS = 1e-11
"""The relative part that is taken off a float above EXACT before it counts as a whole number."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Tables of whole numbers, and the one of each operator.

    rows: of all tables, one after the other, without those that another one of their table is as good as in every
    column; shape (rows, columns).
    first: the first row of each table, with the number of rows at the end, shape (tables + 1,).
    of_operator: the number of the table of each operator, shape (operators,).
    """

    rows: FloatArray
    first: IntArray
    of_operator: IntArray

    def least(self, column: int) -> FloatArray:
        """Of each operator the least value, shape (operators,)."""
        return np.minimum.reduceat(self.rows[:, column], self.first[:-1])[self.of_operator]

    def most(self, column: int) -> FloatArray:
        """Of each operator the largest value, shape (operators,)."""
        return np.maximum.reduceat(self.rows[:, column], self.first[:-1])[self.of_operator]


def choices(problem: Problem, fewest_replicas: int = 1) -> Choices | None:
    """The choices of all operators. None where one of them fits on no device: then no plan does.

    fewest_replicas: of each stage, those in all pipelines counted. (Of cuts with the same runs and samples `cuts`
    keeps the one with the fewest; one of a single replica has samples of its own.)
    An operator that does not depend on the input may be in several stages: it costs nothing here.
    """
    graph = problem.profile.graph
    kinds, every_way = dict.fromkeys(problem.cluster.devices), ways(problem)
    at_once = _before_the_last(graph, every_way)
    parts = [
        part
        for kind, rows in zip(kinds, every_way, strict=True)
        for part in _parts(
            problem, rows, problem.cluster.type_by_name[kind].memory_bytes, at_once, fewest_replicas
        )
    ]
    if not parts:  # no cut has so many replicas
        return None
    order = np.concatenate([operators for operators, _ in parts])
    by_operator = np.argsort(order, kind="stable")
    values = np.concatenate([columns for _, columns in parts])[by_operator]
    first = np.searchsorted(order[by_operator], np.arange(len(graph.operators) + 1))
    known: dict[bytes, int] = {}
    tables: list[FloatArray] = []
    found: list[int] = []
    for position, operator in enumerate(graph.operators):
        rows = values[first[position] : first[position + 1]]
        if operator.constant:
            rows = np.zeros((1, len(COLUMNS)))
        if not len(rows):
            return None
        number = known.setdefault(rows.tobytes(), len(tables))
        if number == len(tables):
            tables.append(rows[undominated(rows)])
        found.append(number)
    first_row = np.cumsum([0, *map(len, tables)])
    return Choices(np.concatenate(tables), first_row, np.array(found, np.int64))


def undominated(rows: FloatArray, group: IntArray | None = None) -> IntArray:
    """The rows that no other one of their group is as good as in every column; of equal rows one.

    The first column is good where it is large, the others where they are small. The rows come group by group.
    """
    group = np.zeros(len(rows), np.int64) if group is None else group
    signed = rows.copy()
    signed[:, 0] *= -1
    order = np.lexsort((*signed.T[::-1], group))
    kept: IntArray = order[_kept(signed[order], group[order])]
    return kept


@kernel
def _kept(rows: FloatArray, group: IntArray) -> IntArray:
    """Of rows in ascending order those that no kept one before them is nowhere above. group: of each row."""
    kept = np.empty(len(rows), np.int64)
    count, first = 0, 0
    for row in range(len(rows)):
        worse = False
        if row > 0 and group[row] != group[row - 1]:
            first = count
        for at in range(count - 1, first - 1, -1):
            worse = True
            for column in range(rows.shape[1]):
                if rows[kept[at], column] > rows[row, column]:
                    worse = False
                    break
            if worse:
                break
        if not worse:
            kept[count] = row
            count += 1
    return kept[:count]


def _parts(
    problem: Problem, rows: Ways, memory_bytes: int, at_once: Sequence[int], fewest_replicas: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Operators and columns of the ways that fit, for groups of cuts, without and with recomputation."""
    listed = [cut for cut in cuts(problem) if cut.replicas >= fewest_replicas]
    joined = len(listed) * len(rows.operator) > MOST_ROWS
    groups: dict[tuple[int, ...], list[Cut]] = {}
    for number, cut in enumerate(listed):
        alike = (cut.samples.bit_length(), cut.replicas.bit_length()) if joined else (number,)
        groups.setdefault(alike, []).append(cut)
    shares = Shares(problem, rows, at_once)
    repeats = (False, True) if problem.pins.recompute in (None, "stage") else (False,)
    for group in groups.values():
        for repeat in repeats:
            least = np.full((len(COLUMNS), len(rows.operator)), np.inf)
            least[DEVICES] = 0
            for cut in group:
                fits = (rows.devices * cut.replicas <= problem.cluster.size) & (
                    shares.peak_bytes(cut.samples, repeat) <= memory_bytes
                )
                columns = np.where(fits, shares.columns(cut, repeat), np.inf)
                most = np.maximum(least[DEVICES], np.where(fits, columns[DEVICES], 0))
                np.minimum(least, columns, out=least)
                least[DEVICES] = most
            fit = least[DEVICES] > 0
            yield rows.operator[fit], least[:, fit].T


class Shares:
    """The columns of all ways on one device type, by cut. repeat: whether the stage recomputes. at_once: operators
    that save something at one instant.

    Then a backward runs the forward again, and what is saved is held once, while any micro-batch is live.
    """

    def __init__(self, problem: Problem, rows: Ways, at_once: Sequence[int]) -> None:
        self.problem = problem
        self.rows = rows
        self.formula = Formula(problem.regime, problem.mini_batch)
        self.counted, self.experts = parameter_bytes_counted(problem.profile.graph, rows)
        self.held_at_once = np.isin(rows.operator, at_once)
        self.times = cache(self._times)
        self.state_bytes = cache(self._state_bytes)
        self.update_ns = cache(self._update_ns)
        self.peak_bytes = cache(self._peak_bytes)

    def columns(self, cut: Cut, repeat: bool) -> FloatArray:
        """Shape (columns, rows)."""
        devices = self.rows.devices
        forward, whole, crossing, busy, busy_crossing, saved = self.times(cut.samples)
        again = forward if repeat else 0 * forward
        computed = cut.computed * devices
        kept = (busy + again if repeat else whole) * saved
        own = computed * (kept + (whole + again) * self.rows.workspace_bytes)
        return np.stack(
            [
                devices * self._most_replicas(cut),
                computed * (busy + again),
                computed * (busy_crossing + again),
                devices * cut.replicas * self.update_ns(cut.replicas),
                forward,
                crossing + again,
                self.state_bytes(cut.replicas),
                computed * (0 * saved if repeat else saved),
                np.where(own < EXACT, own, np.floor(own * (1 - LOSS))),
                self._replicas_at_once(cut) * devices * saved * self.held_at_once,
            ]
        )

    def _replicas_at_once(self, cut: Cut) -> int:
        """Replicas that save a part of one micro-batch, at least. In sync they may be in pipelines that share
        device sets; each pipeline has an instant of its own.
        """
        return cut.replicas if cut.turns == 1 and self.problem.regime.mode == "async" else 1

    def _times(self, samples: int) -> FloatArray:
        """Forward, run, crossing, busy time of a run and of a crossing, and saved bytes, of one micro-batch on one
        device.

        A check of a periodic schedule may count one micro-batch less of a stage whose forward or backward takes no
        time: its saved bytes count nothing.
        """
        rows, cut = self.rows, Cut(1, samples, 1)
        forward, whole = rows.forward_ns(samples), rows.run_ns(samples)
        saved = whole_bytes(rows.saved_bytes * samples)
        kept = self.formula.live_bytes(saved) - self.formula.live_bytes(0 * saved)
        return np.stack(
            [
                forward,
                whole,
                rows.crossing_ns(samples),
                busy_ns(self.problem, rows, cut),
                busy_ns(self.problem, rows, cut, crossing=True),
                np.where((forward > 0) & (whole > forward), kept, 0),
            ]
        ).astype(np.float64)

    def _state_bytes(self, replicas: int) -> FloatArray:
        return np.floor(state_of_ways(self.problem.regime, self.counted, self.experts, self.rows, replicas))

    def device_state_bytes(self, replicas: int, degree: int) -> FloatArray:
        """Of each way the state on one device of a stage whose replicas have `degree` devices each."""
        regime = self.problem.regime
        if regime.expert_ranks == 1:
            return np.asarray(self.state_bytes(replicas) / (self.rows.devices * replicas), np.float64)
        return state_on_a_device(regime, self.counted, self.experts, self.rows, replicas, degree)

    def _update_ns(self, replicas: int) -> IntArray:
        return additive_update_ns(self.problem, self.rows, self.counted, self.experts, replicas)

    def _peak_bytes(self, samples: int, repeat: bool) -> IntArray:
        """The peak of a device whose stage holds nothing but the operator, with one live micro-batch."""
        rows = self.rows
        none = np.zeros_like(rows.workspace_bytes)
        content = Holdings(
            state_bytes=state_bytes(
                self.formula, least_parts(self.problem, rows.parameter_bytes, rows.expert_bytes)
            ),
            saved_bytes=whole_bytes(rows.saved_bytes * samples),
            input_bytes=none,
            buffer_bytes=none,
            workspace_bytes=rows.workspace_bytes,
            fixed_bytes=rows.fixed_bytes,
            transient_bytes=none,
            unit_bytes=none,
        )
        return self.formula.memory(content, "stage" if repeat else "none").peak(1)

    def _most_replicas(self, cut: Cut) -> int:
        """The most replicas with the same runs and samples: a cut stands for all of these (`cuts`)."""
        most = most_replicas(self.problem)
        if cut.turns > 1:
            return most
        if cut.samples == 1 or self.problem.pins.data_parallel is not None:
            return cut.replicas
        micro_batch = self.problem.mini_batch // cut.runs
        return max(cut.replicas, min(most, (micro_batch - 1) // (cut.samples - 1)))


def _before_the_last(graph: OperatorGraph, every_way: Sequence[Ways]) -> list[int]:
    """The operator without successors before which most is saved on any type of device, with all before it."""
    saved = np.full(len(graph.operators), np.inf)
    for rows in every_way:
        np.minimum.at(saved, rows.operator, rows.devices * rows.saved_bytes)
    return max(ancestors_of_last(graph), key=lambda operators: float(saved[operators].sum()))


def additive_update_ns(
    problem: Problem, rows: Ways, counted: IntArray, experts: IntArray, replicas: int
) -> IntArray:
    """At most what each row adds to the update of its stage on each device, in ns.

    Bandwidth alone: a ring has one latency for all weights of a stage. A sum is rounded once and its parts here
    each, so 1 ns is taken off each of them (2 ns where groups of ranks share out a copy: inside one and between
    them), and off what a rounded overlap leaves. Gradients of another precision are rounded up to bytes, so those
    of one element are left out. Parameters count once, as their state does.
    Gradients of experts that ranks share out are not counted: it may be that no two ranks hold the same ones.

    counted, experts: bytes of each way (`parameter_bytes_counted`).
    """
    formula, regime = Formula(problem.regime, problem.mini_batch), problem.regime
    alike = counted - experts
    sent = alike if regime.step is None else np.maximum(alike - ELEMENT, 0)
    reduced = np.zeros(len(rows.operator), np.int64)
    rounded = 2 if regime.shards_in_groups else 1
    for devices in set(rows.devices.tolist()) if formula.holders(replicas) > 1 else ():
        chosen = rows.devices == devices
        if devices * replicas <= problem.cluster.size:
            links = fastest_ring(problem.cluster, regime, devices * replicas, devices).without_latency()
            reduced[chosen] = np.maximum(formula.reduce_ns(links, sent[chosen], replicas) - rounded, 0)
    if regime.step is None or regime.mode == "async":
        return reduced
    optimizer = update_ns(formula, 0 * counted, least_parts(problem, counted, experts)) - formula.update_ns(0)
    exposed = formula.exposed_reduce_ns(reduced)
    return np.maximum(exposed - 1, 0) + np.maximum(optimizer - 1, 0)
