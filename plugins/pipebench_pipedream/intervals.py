"""Cost and memory of every interval of a linear operator order as one stage, for each number of replicas."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pipebench.costs.formula import Holdings, Memory
from pipebench.costs.intervals import Intervals
from pipebench.costs.messages import ring_level
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_pipedream.paper_costs import released_micro_batches
from pipebench_pipedream.plugin import MemoryReading


class IntervalCosts:
    """Costs of the intervals [i, j) of `order`; tables are indexed [replica choice, i, j], shape (c, n+1, n+1).

    replicas: the numbers of replicas to choose from. Entries with i >= j mean nothing.
    """

    def __init__(self, problem: Problem, order: Sequence[int], replicas: Sequence[int]) -> None:
        self.problem = problem
        self.order = tuple(order)
        self.replicas = tuple(replicas)
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

    def _samples(self, micro_batch: int) -> list[int]:
        return [-(-micro_batch // replicas) for replicas in self.replicas]

    def compute_ns(self, micro_batch: int) -> IntArray:
        """Prefix sums of forward and backward along the order, shape (c, n + 1)."""
        order = np.array(self.order, dtype=np.int64)
        sums = np.zeros((len(self.replicas), self.places + 1), dtype=np.int64)
        for choice, samples in enumerate(self._samples(micro_batch)):
            terms = self.model.terms(samples)
            np.cumsum((terms.forward_ns + terms.backward_ns)[order], out=sums[choice, 1:])
        return sums

    def period_ns(self, micro_batch: int) -> IntArray:
        """Time in ns that a stage takes for each micro-batch.

        sync: compute, its share of the update, and what leaves the stage, each tensor once, forward and gradient.
        async: compute with its share of the update, or either cut where that takes longer. Tensors are passed on
            from stage to stage.
        """
        prefix = self.compute_ns(micro_batch)
        period = prefix[:, None, :] - prefix[:, :, None]
        whole = self.model.terms(micro_batch)
        for choice, replicas in enumerate(self.replicas):
            period[choice] += self._formula.update_share_ns(self._updates(replicas), micro_batch)
            sent = self._formula.message_ns(self._link, whole.tensor_bytes, replicas, replicas)
            sent += self._formula.message_ns(self._link, whole.gradient_bytes, replicas, replicas)
            if self._relay:
                cut = self._intervals.at_cuts(sent)
                np.maximum(period[choice], cut[:, None], out=period[choice])
                np.maximum(period[choice], cut[None, :], out=period[choice])
            else:
                period[choice] += self._intervals.outgoing_sums(sent)
        return period

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
        level = ring_level(self.problem.cluster, 0, replicas - 1)
        reduced = self._formula.all_reduce_ns(level, self._intervals.parameter_bytes, replicas)
        return self._formula.update_ns(reduced)


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
    for every q (`p`), or one fewer (`released`: the last stage is free).
    """
    if reading == "released":
        return 1 + costs.released_micro_batches(micro_batch, limit_bytes)
    held = costs.live_micro_batches(micro_batch, limit_bytes)
    if reading == "decreasing":
        return held
    replicas = np.array(costs.replicas, dtype=np.int64)[:, None, None]
    everywhere: IntArray = np.where(held >= -(-devices // replicas), held, 0)
    return everywhere
