"""Bisection on the target period: the smallest bottleneck at one micro-batch size (GraphPipe algorithm 1)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.chain_dp import UNREACHED, Depths
from pipebench_graphpipe.feasibility import Feasibility
from pipebench_graphpipe.retrace import FoundStage, Prefer, Retrace
from pipebench_graphpipe.solved import Solved
from pipebench_graphpipe.space import Chain
from pipebench_graphpipe.stage_costs import StageCosts


@dataclass(frozen=True, slots=True)
class Partition:
    """Stages within a target, and the longest of their periods."""

    costs: StageCosts
    stages: tuple[FoundStage, ...]
    bottleneck_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The partition that a target admits, and the solution it was retraced from: others may be as shallow."""

    partition: Partition
    search: Feasibility
    solved: Solved

    def partitions(self) -> list[Partition]:
        """Partitions of that target and depth, by each preference among stages that serve; no two alike."""
        found = [self.partition]
        for prefer in OTHERS:
            other = _retraced(self.search, self.solved, self.partition.costs, prefer)
            if all(other.stages != partition.stages for partition in found):
                found.append(other)
        return found


OTHERS: tuple[Prefer, ...] = ("last", "short")


class TargetSearch:
    """Searches the space of one chain at one micro-batch size. live: limits by memory alone."""

    def __init__(self, chain: Chain, costs: StageCosts, live: Depths, devices: int) -> None:
        self.chain, self.costs, self.live, self.devices = chain, costs, live, devices
        self.calls = self.states = self.transitions = 0

    def within(self, target_ns: int | None) -> Found | None:
        """Stages with periods of at most the target (None: any), as shallow as can be, if there are any."""
        limits = self.live
        if target_ns is not None:
            limits = np.where(self.costs.period_ns <= target_ns, limits, 0).astype(np.int32)
        search = Feasibility(limits, self.costs.replicas, self.devices)
        solved = search.behind(self.chain, 0)
        self.calls += 1
        found = None
        if solved.at(0)[self.devices] < UNREACHED:
            found = Found(_retraced(search, solved, self.costs, "first"), search, solved)
        self.states += search.states
        self.transitions += search.transitions
        return found

    def smallest(
        self, least_ns: int, tolerance: float, stop: Callable[[], bool] = lambda: False
    ) -> Partition | None:
        """The smallest bottleneck within a factor of 1 + tolerance; None when no plan fits in memory.

        least_ns: no plan has a smaller one. The search goes by the ratio of what worked to what failed; a success
        lowers the upper end to the bottleneck of the plan found. stop: asked before each further step.
        """
        found = self.within(None)
        best = None if found is None else found.partition
        while best is not None and best.bottleneck_ns > least_ns * (1 + tolerance) and not stop():
            middle = int((least_ns * best.bottleneck_ns) ** 0.5)
            target = min(max(middle, least_ns), best.bottleneck_ns - 1)
            found = self.within(target)
            if found is None:
                least_ns = target + 1
            else:
                best = found.partition
        return best

    def near(self, best: Partition, share: float) -> list[Partition]:
        """Other partitions for targets at the smallest bottleneck, that share above it, and half way."""
        found: list[Partition] = []
        targets = (int(best.bottleneck_ns * (1 + part * share)) for part in (0, 0.5, 1))
        for target in dict.fromkeys(targets):
            within = self.within(target)
            assert within is not None
            for partition in within.partitions():
                if all(partition.stages != other.stages for other in (best, *found)):
                    found.append(partition)
        return found


def _retraced(search: Feasibility, solved: Solved, costs: StageCosts, prefer: Prefer) -> Partition:
    stages = Retrace(search, costs.period_ns, prefer).from_position(solved, 0, search.devices).stages
    return Partition(costs, stages, max(int(costs.period_ns[stage.slot, stage.choice]) for stage in stages))
