"""Bisection on the target period: the smallest bottleneck at one micro-batch size (GraphPipe algorithm 1)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.chain_dp import UNREACHED, Depths
from pipebench.costs.model import CostModel
from pipebench_graphpipe.feasibility import Feasibility
from pipebench_graphpipe.retrace import FoundStage, Retrace
from pipebench_graphpipe.space import Chain
from pipebench_graphpipe.stage_costs import StageCosts


@dataclass(frozen=True, slots=True)
class Partition:
    """Stages within a target, and the longest of their periods."""

    costs: StageCosts
    stages: tuple[FoundStage, ...]
    bottleneck_ns: int


class TargetSearch:
    """Searches the space of one chain at one micro-batch size. live: limits by memory alone."""

    def __init__(self, chain: Chain, costs: StageCosts, live: Depths, devices: int) -> None:
        self.chain, self.costs, self.live, self.devices = chain, costs, live, devices
        self.calls = self.states = self.transitions = 0

    def within(self, target_ns: int | None) -> Partition | None:
        """Stages with periods of at most the target (None: any), as shallow as can be, if there are any."""
        limits = self.live
        if target_ns is not None:
            limits = np.where(self.costs.period_ns <= target_ns, limits, 0).astype(np.int32)
        search = Feasibility(limits, self.costs.replicas, self.devices)
        solved = search.behind(self.chain, 0)
        self.calls += 1
        found = None
        if solved.at(0)[self.devices] < UNREACHED:
            stages = Retrace(search).from_position(solved, 0, self.devices).stages
            found = Partition(self.costs, stages, max(self._period(stage) for stage in stages))
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
        best = self.within(None)
        while best is not None and best.bottleneck_ns > least_ns * (1 + tolerance) and not stop():
            middle = int((least_ns * best.bottleneck_ns) ** 0.5)
            target = min(max(middle, least_ns), best.bottleneck_ns - 1)
            found = self.within(target)
            if found is None:
                least_ns = target + 1
            else:
                best = found
        return best

    def _period(self, stage: FoundStage) -> int:
        return int(self.costs.period_ns[stage.slot, stage.choice])


def least_period_ns(model: CostModel, micro_batch: int, replicas: tuple[int, ...], devices: int) -> int:
    """No plan has a smaller bottleneck.

    A stage on d devices has a period of at least its operators' time at ceil(b / d) samples. So the sum of d
    times the period over all stages, at most `devices` times the bottleneck, is at least the sum over all
    operators of the smallest d times their time at ceil(b / d).
    """
    device_ns = []
    for used in replicas:
        forward, backward = model.times.at(-(-micro_batch // used))
        device_ns.append(used * (forward + backward))
    return -(-int(np.min(device_ns, axis=0).sum()) // devices)
