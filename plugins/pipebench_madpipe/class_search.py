"""The best plan of MadPipe's class on one chain: contiguous, or with one GPU that runs several stages."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pipebench.algorithms.chain import Chain
from pipebench.algorithms.contiguous import StageRange, contiguous_optimum, longest_period, shortest_period
from pipebench.algorithms.stage_table import stage_table
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import Allocation
from pipebench_madpipe.estimate import Estimate, estimated_period
from pipebench_madpipe.label_search import Class, allocations_at, estimated_optimum
from pipebench_madpipe.moves import improve, schedule_below

BOUND = Estimate(tight=True, in_place=True)


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look where the bound is not met: target periods, labels for all of them, allocations at each,
    nodes to schedule the first allocation and each other one at one period, and nodes for the moves from one
    allocation.
    """

    targets: int = 12
    labels: int = 100_000
    wanted: int = 8
    first_nodes: int = 300
    nodes: int = 300
    move_nodes: int = 3000


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An allocation that runs at period_ns; instants of allocation_pattern's operations, None: under 1F1B*."""

    allocation: Allocation
    period_ns: int
    instants: IntArray | None = None


@dataclass(slots=True)
class ClassSearch:
    """One search: give it a chain, then `run`. best: None when nothing was found below the cutoff.

    lower_ns: no plan of the class is below it (or the cutoff). counts: probes, states, labels, nodes.
    """

    chain: Chain
    stages: StageRange
    memory: int
    non_contiguous: bool
    stop: Callable[[], bool]
    effort: Effort = Effort()
    best: Scheduled | None = None
    lower_ns: int = 1
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, below_ns: int | None = None) -> None:
        """Look for plans of a period below `below_ns`."""
        self.lower_ns = shortest_period(self.chain, self.stages)
        contiguous = contiguous_optimum(self.chain, self.stages, self.memory, below_ns=below_ns, stop=self.stop)
        self._count(probes=contiguous.probes, states=contiguous.states)
        below = longest_period(self.chain) + 1 if below_ns is None else below_ns
        if contiguous.best is not None:
            bounds, below = contiguous.best.bounds, contiguous.best.period_ns
            self.best = Scheduled(Allocation(bounds, (False,) * (len(bounds) - 1)), below)
        if not self.non_contiguous:
            self.lower_ns = contiguous.lower_ns
            return
        of = Class(stage_table(self.chain), self.memory, self.stages.least, self.stages.most)
        found = estimated_optimum(of, BOUND, self.lower_ns, below, self.stop)
        self._count(probes=found.probes, labels=found.labels)
        self.lower_ns = found.lower_ns
        starts = [] if self.best is None else [self.best.allocation]
        if found.best is not None:
            starts.insert(0, found.best)
            below = self._schedule(of, found.best, below, self.effort.first_nodes)
        below = self._targets(of, below)
        self._moves(of, starts, below)

    def _open(self, below: int) -> bool:
        return below > self.lower_ns and not self.stop()

    def _targets(self, of: Class, below: int) -> int:
        """Schedule what the estimate admits at periods between the bound and the best."""
        seen: set[Allocation] = set()
        made = 0
        for step in range(self.effort.targets):
            if not self._open(below) or made >= self.effort.labels:
                break
            period = self.lower_ns + (below - 1 - self.lower_ns) * step // self.effort.targets
            found, labels, _ = allocations_at(of, period, BOUND, self.effort.wanted)
            self._count(labels=labels, probes=1)
            made += labels
            for allocation in found:
                if allocation not in seen and self._open(below):
                    seen.add(allocation)
                    below = self._schedule(of, allocation, below, self.effort.nodes)
        return below

    def _schedule(self, of: Class, allocation: Allocation, below: int, nodes: int) -> int:
        arrays = allocation.arrays
        low = estimated_period(of.table, *arrays, of.memory, self.lower_ns, below, BOUND)
        period, instants, visited = schedule_below(of.table, of.memory, low, below, *arrays, nodes)
        self._count(nodes=visited)
        if period < 0:
            return below
        self.best = Scheduled(allocation, period, instants)
        return period

    def _moves(self, of: Class, starts: list[Allocation], below: int) -> None:
        """Local search from the best and from where it came."""
        listed = ([] if self.best is None else [self.best.allocation]) + starts
        for allocation in dict.fromkeys(listed):
            if not self._open(below):
                return
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
                self.best = Scheduled(moved, period, instants)

    def _count(self, **work: int) -> None:
        for name, amount in work.items():
            self.counts[name] = self.counts.get(name, 0) + amount
