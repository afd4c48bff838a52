"""What the items between which `layout` cuts cost."""

from functools import cached_property

import numpy as np
from pipebench.costs.memory import weight_state_bytes

from pipebench.algorithms.degrees import Way
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray

Items = tuple[tuple[int, ...], ...]


class ItemCosts:
    """Times and memory of runs of items under one way and micro-batch (samples of one replica)."""

    def __init__(self, model: CostModel, items: Items, way: Way, samples: int, replicas: int) -> None:
        problem = model.problem
        self._costs = problem.profile.on(problem.cluster.devices[0]).operators
        chosen = [[model.times.chosen(op, way.choice[op], samples)[:2] for op in group] for group in items]
        self.forward_ns = [sum(forward for forward, _ in group) for group in chosen]
        backward = [sum(backward for _, backward in group) for group in chosen]
        extra = self.forward_ns if way.recompute == "stage" else [0] * len(items)
        self.backward_ns = [back + again for back, again in zip(backward, extra, strict=True)]
        self._problem, self._items, self._way = problem, items, way
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
    def held(self) -> IntArray:
        """Sums over the first n items of weights with their gradients and optimizer state, in bytes."""
        return self._up_to([sum(map(self._held, group)) for group in self._items])

    @cached_property
    def saved(self) -> IntArray:
        """Sums over the first n items of what a live micro-batch saves, in bytes."""
        return self._up_to([sum(map(self._saved, group)) for group in self._items])

    @cached_property
    def workspace(self) -> int:
        """The most that an operator needs while it runs, in bytes."""
        transient = 0.0
        for op, identifier in enumerate(self._way.choice):
            if identifier:
                found = self._costs[op].alternative(identifier).transient_bytes_per_sample
                transient = max(transient, found)
        return max(each.workspace_bytes for each in self._costs) + int(transient * self._samples)

    def _held(self, op: int) -> int:
        identifier = self._way.choice[op]
        graph = self._problem.profile.graph
        if identifier:
            weights = self._costs[op].alternative(identifier).parameter_bytes
        else:
            weights = sum(graph.parameter_bytes[name] for name in graph.operators[op].parameters)
        return weight_state_bytes(self._problem.regime, weights, self._replicas)

    def _saved(self, op: int) -> int:
        identifier = self._way.choice[op]
        each = self._costs[op].alternative(identifier) if identifier else self._costs[op]
        return 0 if self._way.recompute == "stage" else int(each.saved_bytes_per_sample * self._samples)

    @staticmethod
    def _up_to(values: list[int]) -> IntArray:
        return np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
