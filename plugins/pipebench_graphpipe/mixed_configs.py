"""Stage configurations: micro-batch size and k; and what one asks of a stage in front of it.

A front is the predecessor of a group of stages. Fronts 0 … C - 1: a stage of that configuration. Front C: none.
Front C + 1 + c: none, and the first stages must have configuration c. The need of a front is the least number of
samples that it has to keep in flight; without a predecessor, the most that the stages behind it keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.stage_costs import StageCosts

NEVER = 1 << 40
"""Need where no stages fit."""


@dataclass(frozen=True, slots=True)
class Configs:
    """costs[c]: tables at the micro-batch size of configuration c; k[c]: its kFkB."""

    costs: tuple[StageCosts, ...]
    k: tuple[int, ...]
    mini_batch: int

    @property
    def count(self) -> int:
        """Number of configurations C."""
        return len(self.k)

    @property
    def fronts(self) -> int:
        """Number of fronts."""
        return 2 * self.count + 1

    def nothing_behind(self) -> IntArray:
        """Needs of every front with no stage behind it, (fronts,)."""
        needs = np.full(self.fronts, NEVER, np.int64)
        for config, (costs, k) in enumerate(zip(self.costs, self.k, strict=True)):
            needs[config] = min(k * costs.micro_batch, self.mini_batch)
        needs[self.count] = 0
        return needs

    def needs(self, config: int, samples: IntArray) -> IntArray:
        """Needs of every front of stages of a configuration that keep so many samples, (fronts, …).

        The in-flight rule of algorithms.in_flight, one successor at a time.
        """
        size = self.costs[config].micro_batch
        found = np.full((self.fronts, *samples.shape), NEVER, np.int64)
        for front, (costs, k) in enumerate(zip(self.costs, self.k, strict=True)):
            own = costs.micro_batch
            wanted = samples + max(k * own, size) + max(0, own - size)
            found[front] = np.minimum(-(-wanted // own) * own, self.mini_batch)
        found[self.count] = found[self.count + 1 + config] = samples
        found[:, samples >= NEVER] = NEVER
        return found

    def limits(self, memory_bytes: int, sample_ns: float | None) -> list[IntArray]:
        """For each configuration the most samples that each stage may keep, (slots, choices); 0: not at all.

        sample_ns: no stage takes longer for each sample.
        """
        found = []
        for costs in self.costs:
            live = costs.most_live(memory_bytes).astype(np.int64)
            if sample_ns is not None:
                live[costs.period_ns > sample_ns * costs.micro_batch] = 0
            found.append(live * costs.micro_batch)
        return found


def all_configs(costs: Sequence[StageCosts], ks: Sequence[int], mini_batch: int) -> Configs:
    """Every size with every k."""
    pairs = [(each, k) for each in costs for k in ks]
    return Configs(tuple(each for each, _ in pairs), tuple(k for _, k in pairs), mini_batch)
