"""Cost and memory of every interval of a linear operator order as one stage, for each number of replicas."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipebench.costs.formula import Formula, Holdings, Memory
from pipebench.costs.model import CostModel
from pipebench.costs.placement import MOST_TURNS
from pipebench.costs.quantise import IntArray
from pipebench.costs.rings import Ring, fastest_ring
from pipebench.costs.sums.intervals import Intervals
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import Problem
from pipebench_pipedream.paper_costs import released_micro_batches
from pipebench_pipedream.plugin import MemoryReading


class IntervalCosts:
    """Costs of the intervals [i, j) of `order`; tables are indexed [replica choice, i, j], shape (c, n+1, n+1).

    replicas: the numbers of replicas to choose from. mode: how they share micro-batches (Stage.replicas). Entries
    with i >= j mean nothing.
    """

    def __init__(
        self, problem: Problem, order: Sequence[int], replicas: Sequence[int], mode: ReplicaMode = "round_robin"
    ) -> None:
        self.problem = problem
        self.order = tuple(order)
        self.replicas = tuple(replicas)
        self.mode: ReplicaMode = mode
        self.turns = tuple(count if mode == "round_robin" else 1 for count in replicas)
        self.sharers = tuple(count // turns for count, turns in zip(self.replicas, self.turns, strict=True))
        self.places = len(self.order)
        self.model = CostModel(problem)
        self._formula = self.model.formula
        self._relay = problem.regime.mode == "async"
        self._intervals = Intervals(self.model.graph, [(operator,) for operator in self.order], relay=self._relay)
        self._link = problem.cluster.flat(problem.cluster.size)
        self._content = lru_cache(maxsize=512)(self._content_at)
        self._memory = lru_cache(maxsize=64)(self._memory_at)
        self._updates = lru_cache(maxsize=64)(self._update_ns)

    def needs_relay(self, ends: Sequence[int]) -> bool:
        """Whether stages that end at these places form a chain only because the plan lists them so.

        That is the case when a tensor crosses two of the cuts between them, or when nothing crosses one.
        """
        cuts = [end for end in ends if end < self.places]
        spans = zip(self._intervals.producer_places, self._intervals.last_places, strict=True)
        crossed = [[cut for cut in cuts if producer < cut <= last] for producer, last in spans]
        return any(len(own) > 1 for own in crossed) or len({cut for own in crossed for cut in own}) < len(cuts)

    @property
    def counts_stages(self) -> bool:
        """Whether the stages behind say how many micro-batches a stage holds, and not the devices behind."""
        return self.problem.regime.mode == "sync" and self.mode == "split"

    def _samples(self, micro_batch: int) -> list[int]:
        return [-(-micro_batch // sharers) for sharers in self.sharers]

    def compute_ns(self, micro_batch: int) -> IntArray:
        """Forward and backward for each micro-batch, summed along the order, shape (c, n + 1).

        No interval as a stage has a shorter period than the difference of two of these.
        """
        return self._work_ns(micro_batch) // np.array(self.turns, dtype=np.int64)[:, None]

    def _work_ns(self, micro_batch: int) -> IntArray:
        """The same of one replica, for each micro-batch that it runs."""
        order = np.array(self.order, dtype=np.int64)
        sums = np.zeros((len(self.replicas), self.places + 1), dtype=np.int64)
        for choice, samples in enumerate(self._samples(micro_batch)):
            terms = self.model.terms(samples)
            np.cumsum((terms.forward_ns + terms.backward_ns)[order], out=sums[choice, 1:])
        return sums

    def period_ns(self, micro_batch: int) -> IntArray:
        """Time in ns that a stage takes for each micro-batch.

        What a replica is busy for with one micro-batch, over the replicas that take turns: compute and the share
        of the update; in sync also what leaves the stage, each tensor once, forward and gradient. (In async a cut
        is a resource of its own, see `cut_times`.)
        """
        prefix = self._work_ns(micro_batch)
        period = prefix[:, None, :] - prefix[:, :, None]
        for choice, (replicas, turns) in enumerate(zip(self.replicas, self.turns, strict=True)):
            if self.problem.regime.shards_weights and self._formula.holders(replicas) > 1:
                period[choice] = self._shared_ns(micro_batch, choice)
            period[choice] += self._formula.update_share_ns(self._updates(replicas), micro_batch, turns)
            if not self._relay:
                sent = self._sent_ns(micro_batch, self.sharers[choice])
                period[choice] += self._intervals.outgoing_sums(sent)
            period[choice] = self._formula.pace_ns(period[choice], turns)
        return period

    def _shared_ns(self, micro_batch: int, choice: int) -> IntArray:
        """Forward and backward of a replica, or what it exchanges of weights beside each, whichever is longer."""
        replicas, weights = self.replicas[choice], self._intervals.parameter_bytes
        compute = self._intervals.compute_ns(self.model.terms(self._samples(micro_batch)[choice]))
        exchange = self._formula.exchange_ns(self._ring(replicas), weights, replicas)
        return self._formula.times(compute, 0 * weights, micro_batch, 1, "none", exchange).period

    def _sent_ns(self, micro_batch: int, sharers: int) -> IntArray:
        """The time of a message of each tensor and of one of its gradient between so many replicas."""
        whole = self.model.terms(micro_batch)
        sent = self._formula.message_ns(self._link, whole.tensor_bytes, sharers, sharers)
        return sent + self._formula.message_ns(self._link, whole.gradient_bytes, sharers, sharers)

    def cut_times(self, micro_batch: int) -> "CutTimes":
        """What cuts take between the stages on both sides of them.

        async: the tensors that are passed on and their gradients, on links that two replicas in turn use each time
            they meet again. sync: nothing, for it is in the period of the stage in front.
        Stages that meet again after more than MOST_TURNS micro-batches may not follow one another.
        """
        if self.counts_stages:
            return CutTimes(
                kind=np.zeros(len(self.replicas), dtype=np.int64),
                pairs=np.zeros((1, 3), dtype=np.int64),
                rows=np.zeros((1, self.places + 1), dtype=np.int64),
            )
        turns, sharers = (np.array(each, dtype=np.int64) for each in (self.turns, self.sharers))
        before, behind = (each.ravel() for each in np.meshgrid(*[np.flatnonzero(turns <= MOST_TURNS)] * 2))
        together = np.lcm(turns[before], turns[behind])
        near = together <= MOST_TURNS
        before, behind, together = before[near], behind[near], together[near]
        links = np.minimum(sharers[before], sharers[behind])
        if not len(links):
            return CutTimes(
                np.arange(len(turns)), np.zeros((0, 3), np.int64), np.zeros((0, self.places + 1), np.int64)
            )
        if not self._relay:
            links, together = 0 * links, 0 * together
        each, row = np.unique(np.stack([links, together]), axis=1, return_inverse=True)
        rows = [self._cut_ns(micro_batch, int(shared), int(turn)) for shared, turn in each.T]
        return CutTimes(
            kind=np.arange(len(self.replicas), dtype=np.int64),
            pairs=np.stack([before, behind, row.ravel()], axis=1).astype(np.int64),
            rows=np.array(rows, dtype=np.int64).reshape(-1, self.places + 1),
        )

    def _cut_ns(self, micro_batch: int, links: int, turns: int) -> IntArray:
        """The time of each cut for each micro-batch. links: 0 for none that takes time."""
        if links == 0:
            return np.zeros(self.places + 1, dtype=np.int64)
        return Formula.pace_ns(self._intervals.at_cuts(self._sent_ns(micro_batch, links)), turns)

    def live_micro_batches(self, micro_batch: int, limit_bytes: int) -> IntArray:
        """How many micro-batches each stage can hold within the limit; 0 where not even one fits."""
        return np.stack(
            [
                np.broadcast_to(self._memory(samples, replicas).most_live(limit_bytes), (self.places + 1,) * 2)
                for samples, replicas in zip(self._samples(micro_batch), self.replicas, strict=True)
            ]
        )

    def released_micro_batches(self, micro_batch: int, limit_bytes: int) -> IntArray:
        """The same as the released optimizer counts, see `paper_costs`."""
        weights = self._intervals.parameter_bytes
        each = [self._content(local).saved_bytes for local in self._samples(micro_batch)]
        return np.stack([released_micro_batches(saved, weights, limit_bytes) for saved in each])

    def _content_at(self, samples: int) -> Holdings[IntArray]:
        return self._intervals.holdings(self.model.terms(samples), recompute=False)

    def _memory_at(self, samples: int, replicas: int) -> Memory[IntArray]:
        content = self._intervals.with_state(self._content(samples), self._formula, replicas)
        return self._formula.memory(content, "none")

    def _update_ns(self, replicas: int) -> IntArray:
        weights = self._intervals.parameter_bytes
        reduced = self._formula.reduce_ns(self._ring(replicas), weights, replicas)
        return self._formula.update_ns(reduced, weights, replicas)

    def _ring(self, replicas: int) -> Ring:
        return fastest_ring(self.problem.cluster, self.problem.regime, replicas)


@dataclass(frozen=True, slots=True)
class CutTimes:
    """Times of cuts by what stands on both sides.

    kind: of each choice of replicas; choices of one kind cut alike.
    pairs: (p, 3) kinds before and behind a cut, and a row of `rows`.
    rows: (r, n + 1) ns for each micro-batch of a cut in front of each place.
    """

    kind: IntArray
    pairs: IntArray
    rows: IntArray


MEANING: dict[MemoryReading, str] = {
    "p": "every stage holds as many micro-batches as there are devices (E0)",
    "decreasing": "a stage holds a micro-batch for each device from its own to the last (E1)",
    "released": (
        "the released optimizer's: a micro-batch for each device behind the stage's own, each with a copy of the "
        "weights, and neither gradients nor buffers (E2)"
    ),
}


def refuse_reading(problem: Problem, reading: MemoryReading) -> None:
    """Raise UnsupportedProblem in sync, where what a stage holds is known, unless `decreasing`."""
    if problem.regime.mode == "sync" and reading != "decreasing":
        raise UnsupportedProblem(
            f"pipedream[memory={reading}] reads an estimate that is made for async", "leave memory out in sync"
        )


def reading_notices(problem: Problem, reading: MemoryReading) -> tuple[str, ...]:
    """Which reading the plan is made under (async)."""
    return (f"memory estimate `{reading}`: {MEANING[reading]}",) if problem.regime.mode == "async" else ()


def room(
    costs: IntervalCosts, reading: MemoryReading, micro_batch: int, limit_bytes: int, devices: int
) -> IntArray:
    """The most micro-batches that the search may ask each stage to hold, 0 where it does not fit, shape (c, n+1,
    n+1).

    The search asks a stage with d replicas for ceil(q / d) micro-batches, where q counts the devices from its own
    to the last. What a stage is charged for that depends on the reading: as many (`decreasing`), ceil(devices / d)
    for every q (`p`), or one fewer (`released`: the last stage is free). In sync no replica holds more than its
    micro-batches of a mini-batch.
    """
    if reading == "released":
        return 1 + costs.released_micro_batches(micro_batch, limit_bytes)
    held = costs.live_micro_batches(micro_batch, limit_bytes)
    replicas = np.array(costs.replicas, dtype=np.int64)[:, None, None]
    if reading == "decreasing":
        if costs.problem.regime.mode == "async" or costs.counts_stages:
            return held
        whole = -(-(costs.problem.mini_batch // micro_batch) // replicas)
        return np.where(held >= whole, np.maximum(held, devices), held)
    everywhere: IntArray = np.where(held >= -(-devices // replicas), held, 0)
    return everywhere
