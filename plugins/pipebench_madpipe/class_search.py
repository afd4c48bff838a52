"""The best plan of MadPipe's class on one chain: contiguous, or with one GPU that runs several stages."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from pipebench.algorithms.chains.chain import Chain
from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum, longest_period, shortest_period
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import Allocation, Estimate, estimated_period
from pipebench_madpipe.class_memory import least_special_bytes
from pipebench_madpipe.label_search import Class, LabelSearch, allocations_at, estimated_optimum, proven_bound
from pipebench_madpipe.moves import improve, schedule_below
from pipebench_madpipe.stage_table import CUT_HELD, WORK, RunTable, run_table

SHARES, FEW_SHARES = 48, 16
NEAR = 4
"""Cuts on either side of one that is refined."""


def spread(of: Class, also: Iterable[int]) -> Class:
    """Keep only the cuts `also` and, in each share of the work, the cut with the smallest buffers."""
    return _restrict_cuts(of, {*also, *_shares(of.table, SHARES)})


def around(of: Class, bounds: Iterable[int]) -> Class:
    """Keep only the cuts close to `bounds`, and a few along the whole chain."""
    close = {bound + by for bound in bounds for by in range(-NEAR, NEAR + 1)}
    return _restrict_cuts(of, close | _shares(of.table, FEW_SHARES))


def restricted_table(table: RunTable, cuts: IntArray) -> RunTable:
    """The table of the same chain with cuts at `cuts` only, which ascend from 0 to L. All costs stay exact."""
    return RunTable(
        np.ascontiguousarray(table.layers[:, cuts]), np.ascontiguousarray(table.stages[np.ix_(cuts, cuts)])
    )


def _restrict_cuts(of: Class, wanted: set[int]) -> Class:
    cuts = np.array(sorted({0, of.length} | {cut for cut in wanted if 0 < cut < of.length}), np.int64)
    return replace(of, table=restricted_table(of.table, cuts), cuts=cuts)


def _shares(table: RunTable, count: int) -> set[int]:
    """The cut with the smallest buffers in each of `count` equal shares of the work."""
    work = table.layers[WORK]
    share = work[1:-1] * count // max(1, int(work[-1]))
    best: dict[int, int] = {}
    for cut, number in enumerate(map(int, share), 1):
        if number not in best or table.layers[CUT_HELD][cut] < table.layers[CUT_HELD][best[number]]:
            best[number] = cut
    return set(best.values())


BOUND = Estimate(tight=True, in_place=True)
BOTH_WAYS = Estimate(tight=True, in_place=True, both_ways=True)
CLOSE = 300
"""Periods that differ by less than one part in so many are taken as one where nothing is proven by them."""
EQUAL, WIDE = 2000, 64
"""To one part in so many the bound is closed in on; that of a long chain."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search where a plan does not meet the bound.

    targets: target periods between the bound and the best plan.
    more_targets: target periods of the second round, with cuts close to the best plan (long chains).
    labels: labels for all target periods together.
    short_chain: a chain of more layers is searched with some of its cuts first.
    long_chain: for a chain of more layers the bound is not closed.
    coarse_labels: labels of the search with some of the cuts.
    bound_labels: labels of one probe of a long chain's bound, times its layers.
    wanted: allocations at each target period.
    first_nodes: nodes to schedule one of the first allocations at one period.
    nodes: nodes to schedule any other allocation at one period.
    move_nodes: nodes for all moves from one allocation.
    """

    targets: int = 12
    more_targets: int = 4
    labels: int = 100_000
    short_chain: int = 40
    long_chain: int = 200
    coarse_labels: int = 40_000
    bound_labels: int = 1_300_000
    wanted: int = 8
    first_nodes: int = 300
    nodes: int = 300
    move_nodes: int = 3000


@dataclass(frozen=True, slots=True)
class PeriodicAllocation:
    """An allocation with a schedule of period `period_ns`.

    instants: start of each operation of allocation_pattern, in ns. None: the schedule is 1F1B*.
    """

    allocation: Allocation
    period_ns: int
    instants: IntArray | None = None


@dataclass(slots=True)
class ClassSearch:
    """The search on one chain: create it, then call `run`.

    both_ways: the transfers of a cut may overlap. The search still lets them take turns; the bound does not.
    best: the best plan; None where no plan is below the cutoff.
    lower_ns: a lower bound on the period of every plan of the class (or the cutoff).
    met_ns: the shortest period that the estimate met with some of the cuts (long chains only).
    counts: probes, states, labels and nodes.
    """

    chain: Chain
    stages: StageRange
    memory: int
    non_contiguous: bool
    stop: Callable[[], bool]
    both_ways: bool = False
    effort: Effort = Effort()
    best: PeriodicAllocation | None = None
    lower_ns: int = 1
    met_ns: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, below_ns: int | None = None, start: PeriodicAllocation | None = None) -> None:
        """Search for plans of a period below `below_ns`.

        start: a known plan of that period.
        """
        self.lower_ns = shortest_period(self.chain, self.stages)
        contiguous = contiguous_optimum(self.chain, self.stages, self.memory, below_ns=below_ns, stop=self.stop)
        self._count(probes=contiguous.probes, states=contiguous.states)
        below = longest_period(self.chain) + 1 if below_ns is None else below_ns
        self.best = start
        if contiguous.best is not None:
            bounds, below = contiguous.best.bounds, contiguous.best.period_ns
            self.best = PeriodicAllocation(Allocation(bounds, (False,) * (len(bounds) - 1)), below)
        if not self.non_contiguous:
            self.lower_ns = contiguous.lower_ns
            return
        of = Class(run_table(self.chain), self.memory, self.stages.least, self.stages.most)
        if self.best is None and least_special_bytes(of.table, of.memory, of.most - 1) > of.memory:
            self.lower_ns = below
            return
        near = of
        firsts: list[Allocation] = []
        if of.length > self.effort.short_chain:
            near, firsts = self._coarse(of, below)
            self.met_ns = min((self._period_estimate(of, first, below) for first in firsts), default=below)
            for first in firsts:
                if self._open(below):
                    below = self._schedule(of, first, below, self.effort.first_nodes)
        self.lower_ns, found = self._lower_bound(of, min(below, self.met_ns or below))
        starts = [*found, *firsts] + ([] if self.best is None else [self.best.allocation])
        for first in found:
            if self._open(below):
                below = self._schedule(of, first, below, self.effort.first_nodes)
        if of.length <= self.effort.long_chain and 0 < below - self.lower_ns <= self.lower_ns // EQUAL:
            self.lower_ns, _ = self._lower_bound(of, below, self.lower_ns + 1)
        below = self._targets(of, near, below, self.effort.targets)
        below = self._moves(of, starts, below)
        if of.length > self.effort.short_chain and self.best is not None:
            again = around(of, self.best.allocation.bounds)
            below = self._targets(of, again, below, self.effort.more_targets)
            below = self._moves(of, [], below)
        if self.both_ways:
            self.lower_ns = self._both_ways_bound(of, below)

    def _both_ways_bound(self, of: Class, below: int) -> int:
        """Most often the bound of transfers that take turns: that one is tried first."""
        in_turns = self.lower_ns
        self.lower_ns = shortest_period(self.chain, self.stages)
        found = self._long_bound(of, BOTH_WAYS, min(in_turns, below), from_above=True)
        self._count(probes=found.probes, labels=found.labels)
        return found.lower_ns

    def _long_bound(self, of: Class, estimate: Estimate, below: int, from_above: bool = False) -> LabelSearch:
        low, each = self.lower_ns, self.effort.bound_labels // of.length
        return proven_bound(
            of, estimate, low, below, self.stop, within=low // WIDE, each_labels=each, from_above=from_above
        )

    def _coarse(self, of: Class, below: int) -> tuple[Class, list[Allocation]]:
        """Allocations with some of the cuts whose estimate is best, best first; and the class around the first."""
        near = spread(of, self.best.allocation.bounds if self.best is not None else ())
        firsts: list[Allocation] = []
        for _ in range(2):
            width = self.lower_ns // CLOSE
            found = estimated_optimum(
                near, BOUND, self.lower_ns, below, self.stop, within=width, most_labels=self.effort.coarse_labels
            )
            self._count(probes=found.probes, labels=found.labels)
            if found.best is None:
                break
            firsts.insert(0, near.on_whole_chain(found.best))
            near, below = around(of, firsts[0].bounds), self._period_estimate(of, firsts[0], below)
        return near, firsts

    def _period_estimate(self, of: Class, allocation: Allocation, below: int) -> int:
        """The shortest period that the estimate of the allocation meets; `below` where it meets none."""
        return estimated_period(of.table, *allocation.arrays, of.memory, self.lower_ns, below, BOUND)

    def _lower_bound(self, of: Class, below: int, parts: int = EQUAL) -> tuple[int, list[Allocation]]:
        """A proven lower bound on the period of the class, and allocations that meet it at less than `below`."""
        width = self.lower_ns // parts
        if of.length <= self.effort.long_chain:
            found = estimated_optimum(of, BOUND, self.lower_ns, below, self.stop, within=width)
        else:
            found = self._long_bound(of, BOUND, below)
        self._count(probes=found.probes, labels=found.labels)
        return found.lower_ns, [] if found.best is None else [found.best]

    def _open(self, below: int) -> bool:
        return below > self.lower_ns and not self.stop()

    def _targets(self, of: Class, near: Class, below: int, most: int) -> int:
        """Schedule allocations whose estimate meets target periods, from the lower bound up to the best plan."""
        seen: set[Allocation] = set()
        made = 0
        low = max(self.lower_ns, self.met_ns)
        # Periods next to each other admit the same allocations.
        targets = min(most, 1 + (below - low) * CLOSE // low)
        for step in range(targets):
            if not self._open(below) or made >= self.effort.labels:
                break
            period = low + (below - 1 - low) * step // targets
            found, labels, _ = allocations_at(near, period, BOUND, self.effort.wanted, self.effort.labels - made)
            self._count(labels=labels, probes=1)
            made += labels
            for allocation in map(near.on_whole_chain, found):
                if allocation not in seen and self._open(below):
                    seen.add(allocation)
                    below = self._schedule(of, allocation, below, self.effort.nodes)
        return below

    def _schedule(self, of: Class, allocation: Allocation, below: int, nodes: int) -> int:
        arrays = allocation.arrays
        low = self._period_estimate(of, allocation, below)
        period, instants, visited = schedule_below(of.table, of.memory, low, below, *arrays, nodes)
        self._count(nodes=visited)
        if period < 0:
            return below
        self.best = PeriodicAllocation(allocation, period, instants)
        return period

    def _moves(self, of: Class, starts: list[Allocation], below: int) -> int:
        """Improve the best plan and the `starts` by local search."""
        listed = ([] if self.best is None else [self.best.allocation]) + starts
        for allocation in dict.fromkeys(listed):
            if not self._open(below):
                break
            period, bounds, special, instants, nodes = improve(
                of.table,
                of.memory,
                self.lower_ns,
                below,
                of.least,
                of.most,
                *allocation.arrays,
                self.effort.move_nodes,
                self.effort.nodes,
            )
            self._count(nodes=nodes)
            if len(instants):
                below = period
                moved = Allocation(tuple(map(int, bounds)), tuple(map(bool, np.asarray(special))))
                self.best = PeriodicAllocation(moved, period, instants)
        return below

    def _count(self, **work: int) -> None:
        for name, amount in work.items():
            self.counts[name] = self.counts.get(name, 0) + amount
