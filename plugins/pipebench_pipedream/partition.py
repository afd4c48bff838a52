"""The best cut of a linear order into stages, by either form of the search."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_pipedream.intervals import IntervalCosts, room
from pipebench_pipedream.plugin import MemoryReading
from pipebench_pipedream.suffix_dp import NONE, UNREACHED, smallest_bottleneck, within_target


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
        tables = _IntervalTables(
            self.costs.period_ns(self.micro_batch),
            self.costs.compute_ns(self.micro_batch),
            room(self.costs, self.memory, self.micro_batch, self.limit_bytes, self.devices),
            np.array(self.costs.replicas, dtype=np.int64),
        )
        return self._by_stage_count(tables) if form == "k" else self._by_target(tables)

    @property
    def _micro_batches(self) -> int:
        return self.costs.problem.mini_batch // self.micro_batch

    @property
    def _counts_stages(self) -> bool:
        return self.costs.problem.regime.mode == "sync"

    def _by_stage_count(self, tables: "_IntervalTables") -> tuple[IntervalPartition | None, int, int]:
        longest = min(self.devices, self.costs.places)
        if self.stages is not None:
            fewest, most = self.stages, self.stages
            if most > longest:
                return None, 0, 0
        else:
            fewest, most = 0, longest if self._counts_stages else 0
        dp, end, chosen, states, transitions = smallest_bottleneck(
            tables.period,
            tables.compute,
            tables.room,
            tables.replicas,
            self.devices,
            fewest,
            most,
            self._micro_batches,
            self._counts_stages,
        )
        whole = dp[fewest:, 0, :]
        layer, used = np.unravel_index(int(whole.argmin()), whole.shape)
        if whole[layer, used] >= UNREACHED:
            return None, states, transitions
        k, place, devices = int(layer) + fewest, 0, int(used)
        ends: list[int] = []
        replicas: list[int] = []
        while place < self.costs.places:
            count = self.costs.replicas[chosen[k, place, devices]]
            place = int(end[k, place, devices])
            ends.append(place)
            replicas.append(count)
            devices -= count
            k = max(0, k - 1)
        return IntervalPartition(tuple(ends), tuple(replicas), int(whole[layer, used])), states, transitions

    def _by_target(self, tables: "_IntervalTables") -> tuple[IntervalPartition | None, int, int]:
        """Bisection in whole nanoseconds, so the bottleneck is the smallest; each success lowers the top to it."""
        states = transitions = 0
        found: IntervalPartition | None = None
        low, high = 0, int(tables.period.max()) + 1
        target = high
        while low < high:
            fewest, end, chosen, reached, tried = within_target(
                target,
                tables.period,
                tables.compute,
                tables.room,
                tables.replicas,
                self.devices,
                self._micro_batches,
                self._counts_stages,
            )
            states, transitions = states + reached, transitions + tried
            if fewest[0].min() >= NONE:
                if found is None:
                    break
                low = target + 1
            else:
                found = self._walk(tables, end, chosen, int(fewest[0].argmin()))
                high = found.bottleneck_ns
            target = (low + high) // 2
        return found, states, transitions

    def _walk(self, tables: "_IntervalTables", end: IntArray, chosen: IntArray, devices: int) -> IntervalPartition:
        place = bottleneck = 0
        ends: list[int] = []
        replicas: list[int] = []
        while place < self.costs.places:
            choice, until = int(chosen[place, devices]), int(end[place, devices])
            bottleneck = max(bottleneck, int(tables.period[choice, place, until]))
            ends.append(until)
            replicas.append(self.costs.replicas[choice])
            place, devices = until, devices - self.costs.replicas[choice]
        return IntervalPartition(tuple(ends), tuple(replicas), bottleneck)


@dataclass(frozen=True, slots=True)
class _IntervalTables:
    period: IntArray
    compute: IntArray
    room: IntArray
    replicas: IntArray
