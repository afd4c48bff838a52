"""What the items between which `layout` cuts cost."""

from functools import cached_property

import numpy as np

from pipebench.algorithms.chains.stage_row import Way
from pipebench.costs.formula import Amount
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.costs.weights import WeightPart, state_bytes, unit_bytes, weight_parts

Items = tuple[tuple[int, ...], ...]


class ItemCosts:
    """Approximate times and memory of runs of items, under one way and micro-batch (samples of one replica).

    forward_ns, backward_ns: of each item.
    every: memory of a stage without any item.
    every_update_ns: of every stage, once a mini-batch.

    Left out: the inputs that a stage keeps to recompute, transfer buffers, messages, all-reduces. Weights that
    items share count more than once.
    """

    def __init__(self, model: CostModel, items: Items, way: Way, samples: int, replicas: int) -> None:
        problem = model.problem
        self._formula = formula = model.formula
        self._costs = problem.profile.on(problem.cluster.devices[0]).operators
        chosen = [[model.times.choice_ns(op, way.choice[op], samples) for op in group] for group in items]
        sums = [[sum(part) for part in zip(*group, strict=True)] for group in chosen]
        forward, backward, weight_gradient = np.array(sums, np.int64).T
        none = np.zeros(len(items), np.int64)
        times = formula.times((forward, backward, weight_gradient), none, samples * replicas, 1, way.recompute)
        self.forward_ns: list[int] = times.forward.tolist()
        self.backward_ns: list[int] = times.backward.tolist()
        self.every = formula.every_stage(replicas, way.recompute)
        self.every_update_ns = formula.update_ns(0)
        self._model, self._items, self._way = model, items, way
        self._samples, self._replicas = samples, replicas

    @cached_property
    def times_ns(self) -> list[int]:
        """Forward and backward of each item."""
        return [f + b for f, b in zip(self.forward_ns, self.backward_ns, strict=True)]

    @cached_property
    def total_ns(self) -> int:
        """Of all items."""
        return sum(self.times_ns)

    @cached_property
    def longest_ns(self) -> int:
        """Of the longest item."""
        return max(self.times_ns)

    @cached_property
    def state_bytes(self) -> IntArray:
        """Prefix sums over the items: weights with their gradients and optimizer state, in bytes."""
        held = np.array([self._weights(op) for op in range(len(self._costs))], np.int64)
        parts = self._parts(held[:, 0], held[:, 1])
        each = state_bytes(self._formula, parts) - self._formula.state_bytes(0, self._replicas)
        return self._up_to([int(each[list(group)].sum()) for group in self._items])

    @cached_property
    def saved_bytes(self) -> IntArray:
        """Prefix sums over the items: what a live micro-batch saves, in bytes."""
        return self._up_to([sum(map(self._saved_bytes_of, group)) for group in self._items])

    @cached_property
    def workspace(self) -> int:
        """The most that an operator needs while it runs, in bytes, with what is gathered for it."""
        transient = 0.0
        for op, identifier in enumerate(self._way.choice):
            if identifier:
                found = self._costs[op].alternative(identifier).transient_bytes_per_sample
                transient = max(transient, found)
        unit = max(unit_bytes(self._parts(*self._weights(op))) for op in range(len(self._costs)))
        scratch = max(each.workspace_bytes for each in self._costs) + self._formula.gathered_bytes(unit)
        return scratch + int(transient * self._samples)

    def _weights(self, op: int) -> tuple[int, int]:
        """Bytes of weights on one device, and of them those of experts that ranks share out."""
        identifier = self._way.choice[op]
        if identifier:
            way = self._costs[op].alternative(identifier)
            return way.parameter_bytes, way.expert_bytes
        return self._model.graph.weight_bytes[op], self._model.graph.expert_weight_bytes[op]

    def _parts(self, held: Amount, experts: Amount) -> tuple[WeightPart[Amount], ...]:
        regime, degree = self._model.problem.regime, self._way.tensor_parallel
        return weight_parts(regime, held, experts, self._replicas, degree)

    def _saved_bytes_of(self, op: int) -> int:
        identifier = self._way.choice[op]
        if self._way.recompute == "stage":
            return 0
        if not identifier:
            return int(self._model.terms(self._samples).saved_bytes[op])
        return whole_bytes(self._costs[op].alternative(identifier).saved_bytes_per_sample * self._samples)

    @staticmethod
    def _up_to(values: list[int]) -> IntArray:
        return np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
