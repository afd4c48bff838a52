"""The best cut of a linear order into stages, by either form of the search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipebench_pipedream.intervals import IntervalCosts, room
from pipebench_pipedream.plugin import MemoryReading
from pipebench_pipedream.suffix_dp import (
    NONE,
    UNREACHED,
    ShortArray,
    SuffixTables,
    smallest_bottleneck,
    within_target,
)


@dataclass(frozen=True, slots=True)
class IntervalPartition:
    """Stages along the order: where each ends and its replicas; the largest stage period in ns."""

    ends: tuple[int, ...]
    replicas: tuple[int, ...]
    bottleneck_ns: int


@dataclass(frozen=True, slots=True)
class IntervalSearch:
    """One search: for one micro-batch size and one memory limit, over at most `devices` devices.

    stages: exactly so many (None: any number, only form `k` can fix it). memory: how the micro-batches that a
    stage holds are estimated.
    """

    costs: IntervalCosts
    micro_batch: int
    limit_bytes: int
    devices: int
    stages: int | None = None
    memory: MemoryReading = "decreasing"

    def run(self, form: Literal["k", "bs"]) -> tuple[IntervalPartition | None, int, int]:
        """The partition of the smallest bottleneck, None where none fits; states reached, transitions tried."""
        cuts = self.costs.cut_times(self.micro_batch)
        tables = SuffixTables(
            period=self.costs.period_ns(self.micro_batch),
            room=room(self.costs, self.memory, self.micro_batch, self.limit_bytes, self.devices),
            compute=self.costs.compute_ns(self.micro_batch),
            replicas=np.array(self.costs.replicas, dtype=np.int64),
            kind=cuts.kind,
            pairs=cuts.pairs,
            cuts=cuts.rows,
        )
        return self._by_stage_count(tables) if form == "k" else self._by_target(tables)

    @property
    def _micro_batches(self) -> int:
        return self.costs.problem.mini_batch // self.micro_batch

    def _by_stage_count(self, tables: SuffixTables) -> tuple[IntervalPartition | None, int, int]:
        longest = min(self.devices, self.costs.places)
        if self.stages is not None:
            fewest, most = self.stages, self.stages
            if most > longest:
                return None, 0, 0
        else:
            fewest, most = 0, longest if self.costs.counts_stages else 0
        suffixes, states, transitions = smallest_bottleneck(
            tables,
            _kinds(tables),
            self.devices,
            fewest,
            most,
            self._micro_batches,
            self.costs.counts_stages,
        )
        whole = suffixes.value[fewest:, 0, 0, :]
        layer, used = np.unravel_index(int(whole.argmin()), whole.shape)
        if whole[layer, used] >= UNREACHED:
            return None, states, transitions
        most = int(layer) + fewest
        layers = [
            (suffixes.follow[k], suffixes.end[k], suffixes.chosen[k]) for k in range(most, min(most, 1) - 1, -1)
        ]
        steps = self._walk(int(used), layers)
        ends = tuple(until for until, _ in steps)
        replicas = tuple(self.costs.replicas[choice] for _, choice in steps)
        return IntervalPartition(ends, replicas, int(whole[layer, used])), states, transitions

    def _by_target(self, tables: SuffixTables) -> tuple[IntervalPartition | None, int, int]:
        """Bisection in whole nanoseconds, so the bottleneck is the smallest; each success lowers the top to it."""
        states = transitions = 0
        found: IntervalPartition | None = None
        low, high = 0, max(int(tables.period.max()), int(tables.cuts.max(initial=0))) + 1
        target = high
        while low < high:
            suffixes, reached, tried = within_target(
                target,
                tables,
                _kinds(tables),
                self.devices,
                self._micro_batches,
                self.costs.counts_stages,
            )
            states, transitions = states + reached, transitions + tried
            whole = suffixes.value[0, 0]
            if whole.min() >= NONE:
                if found is None:
                    break
                low = target + 1
            else:
                steps = self._walk(int(whole.argmin()), [suffixes[1:]])
                found = self._partition(tables, steps)
                high = found.bottleneck_ns
            target = (low + high) // 2
        return found, states, transitions

    def _partition(self, tables: SuffixTables, steps: Sequence[tuple[int, int]]) -> IntervalPartition:
        rows = {(int(a), int(b)): int(row) for a, b, row in tables.pairs}
        place = bottleneck = 0
        before: int | None = None
        for until, choice in steps:
            kind = int(tables.kind[choice])
            bottleneck = max(bottleneck, int(tables.period[choice, place, until]))
            if before is not None:
                bottleneck = max(bottleneck, int(tables.cuts[rows[before, kind], place]))
            place, before = until, kind
        replicas = tuple(self.costs.replicas[choice] for _, choice in steps)
        return IntervalPartition(tuple(until for until, _ in steps), replicas, bottleneck)

    def _walk(self, devices: int, layers: Sequence[tuple[ShortArray, ...]]) -> list[tuple[int, int]]:
        """The end and the choice of each stage. layers: follow, end and chosen for each stage; one serves all."""
        place = kind = 0
        steps: list[tuple[int, int]] = []
        while place < self.costs.places:
            follow, end, chosen = layers[min(len(steps), len(layers) - 1)]
            kind = int(follow[place, kind, devices])
            choice, until = int(chosen[place, kind, devices]), int(end[place, kind, devices])
            steps.append((until, choice))
            place, devices = until, devices - self.costs.replicas[choice]
        return steps


def _kinds(tables: SuffixTables) -> int:
    return int(tables.kind.max(initial=0)) + 1
