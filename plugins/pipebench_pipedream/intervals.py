"""Cost and memory of every interval of a linear operator order as one stage, for each number of replicas.

Equal to what costs.model.CostModel says of the same stage in a plan whose neighbours have as many replicas,
on a cluster with one link level.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from pipebench.costs.arrays import all_reduces_ns, messages_ns, weight_states_bytes
from pipebench.costs.communicate import ring_level
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.domain.problem import Problem
from pipebench_pipedream.rectangles import cut_sums, leaving, touching

UNLIMITED = np.int64(2**40)
"""More live micro-batches than any pipeline holds: a stage that saves nothing."""


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
        graph = self.model.graph
        self._order = np.array(self.order, dtype=np.int64)
        place = {operator: at for at, operator in enumerate(self.order)}
        self._tensors = [t for t, producer in enumerate(graph.producers) if producer >= 0 and graph.consumers[t]]
        producers = [place[graph.producers[t]] for t in self._tensors]
        readers = [sorted(place[reader] for reader in graph.consumers[t]) for t in self._tensors]
        self._producers, self._last = producers, [places[-1] for places in readers]
        self._sent = leaving(self.places, producers, self._last)
        self._received = touching(self.places, readers, producers)
        self._parameters = self._parameter_table()
        self._relay = problem.regime.mode == "async"
        self._link = problem.cluster.flat(problem.cluster.size)
        self._at_samples = lru_cache(maxsize=512)(self._memory_at)
        self._states = lru_cache(maxsize=64)(self._weight_states)
        self._reduces = lru_cache(maxsize=64)(self._all_reduces)

    def needs_relay(self, ends: Sequence[int]) -> bool:
        """Whether stages that end before these places are a chain only because they are listed as one.

        That is: a tensor crosses two of the cuts between them, or nothing crosses one.
        """
        cuts = [end for end in ends if end < self.places]
        spans = zip(self._producers, self._last, strict=True)
        crossed = [[cut for cut in cuts if producer < cut <= last] for producer, last in spans]
        return any(len(own) > 1 for own in crossed) or len({cut for own in crossed for cut in own}) < len(cuts)

    def _parameter_table(self) -> IntArray:
        graph = self.model.graph
        used: dict[str, list[int]] = {}
        for at, operator in enumerate(self.order):
            for name in set(graph.operators[operator].parameters):
                used.setdefault(name, []).append(at)
        weights = np.array([graph.parameter_bytes[name] for name in used], dtype=np.int64)
        return touching(self.places, list(used.values()), [-1] * len(used)).of(weights)

    def _samples(self, micro_batch: int) -> list[int]:
        return [-(-micro_batch // replicas) for replicas in self.replicas]

    def compute_ns(self, micro_batch: int) -> IntArray:
        """Forward and backward of the first operators of the order, shape (c, n + 1): sums up to each place."""
        sums = np.zeros((len(self.replicas), self.places + 1), dtype=np.int64)
        for choice, samples in enumerate(self._samples(micro_batch)):
            forward, backward = self.model.times.at(samples)
            np.cumsum((forward + backward)[self._order], out=sums[choice, 1:])
        return sums

    def period_ns(self, micro_batch: int) -> IntArray:
        """Time that a stage takes for each micro-batch: compute and its share of the all-reduce, and its cuts.

        async: the larger of that and of either cut, whose tensors are passed on from stage to stage.
        sync: the sum of that and of what leaves the stage, each tensor once, forward and gradient.
        """
        prefix = self.compute_ns(micro_batch)
        period = prefix[:, None, :] - prefix[:, :, None]
        forward = np.array([self.model.tensor_bytes(t, micro_batch) for t in self._tensors], dtype=np.int64)
        gradient = np.array([self.model.gradient_bytes(t, micro_batch) for t in self._tensors], dtype=np.int64)
        for choice, replicas in enumerate(self.replicas):
            if replicas > 1:
                period[choice] += -(-self._reduces(replicas) * micro_batch // self.problem.mini_batch)
            sent = messages_ns(self._link, forward, replicas, replicas)
            sent += messages_ns(self._link, gradient, replicas, replicas)
            if self._relay:
                cut = cut_sums(self.places, self._producers, self._last, sent)
                np.maximum(period[choice], cut[:, None], out=period[choice])
                np.maximum(period[choice], cut[None, :], out=period[choice])
            else:
                period[choice] += self._sent.of(sent)
        return period

    def live_micro_batches(self, micro_batch: int, limit_bytes: int) -> IntArray:
        """How many micro-batches each stage can hold within the limit; 0 where not even one fits."""
        samples = self._samples(micro_batch)
        room = np.empty((len(samples), self.places + 1, self.places + 1), dtype=np.int64)
        for choice, (local, replicas) in enumerate(zip(samples, self.replicas, strict=True)):
            fixed, saved = self._at_samples(local)
            free = limit_bytes - fixed - self._states(replicas)
            live = np.where(saved > 0, free // np.maximum(saved, 1), UNLIMITED)
            room[choice] = np.where(free >= 0, live, 0)
        return room

    def released_micro_batches(self, micro_batch: int, limit_bytes: int) -> IntArray:
        """How many copies of weights and saved activations, nothing else, fit within the limit."""
        copies = np.empty((len(self.replicas), self.places + 1, self.places + 1), dtype=np.int64)
        for choice, local in enumerate(self._samples(micro_batch)):
            each = self._at_samples(local)[1] + self._parameters
            copies[choice] = np.where(each > 0, limit_bytes // np.maximum(each, 1), UNLIMITED)
        return copies

    def _memory_at(self, samples: int) -> tuple[IntArray, IntArray]:
        """Message buffers and workspace, and what each live micro-batch saves, of every interval in bytes."""
        operators = self.model.times.costs.operators
        saved = np.array([whole_bytes(c.saved_bytes_per_sample * samples) for c in operators], dtype=np.int64)
        prefix = np.concatenate(([0], saved[self._order].cumsum()))
        exchanged = np.array(
            [self.model.tensor_bytes(t, samples) + self.model.gradient_bytes(t, samples) for t in self._tensors],
            dtype=np.int64,
        )
        if self._relay:
            cut = cut_sums(self.places, self._producers, self._last, exchanged)
            buffers = cut[:, None] + cut[None, :]
        else:
            buffers = self._received.of(exchanged) + self._sent.of(exchanged)
        return buffers + self._workspace, prefix[None, :] - prefix[:, None]

    @cached_property
    def _workspace(self) -> IntArray:
        costs = self.model.times.costs.operators
        scratch = np.array([costs[operator].workspace_bytes for operator in self.order], dtype=np.int64)
        table = np.zeros((self.places + 1, self.places + 1), dtype=np.int64)
        if scratch.any():
            for first in range(self.places):
                np.maximum.accumulate(scratch[first:], out=table[first, first + 1 :])
        return table

    def _weight_states(self, replicas: int) -> IntArray:
        return weight_states_bytes(self.problem.regime, self._parameters, replicas)

    def _all_reduces(self, replicas: int) -> IntArray:
        level = ring_level(self.problem.cluster, 0, replicas - 1)
        return all_reduces_ns(level, self._parameters, replicas)
