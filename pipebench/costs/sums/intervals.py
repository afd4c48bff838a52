"""The sums of every interval of a linear order as one stage: the array face of the cost model.

An interval [i, j) holds the groups at places i … j-1 of the order, 0 <= i < j <= n. What a parameter or a tensor
adds concerns the intervals of a few rectangles of (i, j), so that its sum over all intervals is a two-dimensional
prefix sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pipebench.costs.formula import Formula, Holdings
from pipebench.costs.quantise import IntArray
from pipebench.costs.sums.terms import Terms
from pipebench.domain.graph import OperatorGraph

Rectangle = tuple[int, int, int, int, int]
"""Item, first i, last i, first j, last j (both ends included)."""


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Items, each with the intervals that it concerns."""

    places: int
    rectangles: tuple[Rectangle, ...]

    def sums(self, amounts: IntArray) -> IntArray:
        """For each interval the sum over its items, shape (n + 1, n + 1), [i, j]; amounts: of each item."""
        corners = np.zeros((self.places + 2, self.places + 2), dtype=np.int64)
        if self.rectangles:
            item, first_i, last_i, first_j, last_j = np.array(self.rectangles, dtype=np.int64).T
            amount = amounts[item]
            np.add.at(corners, (first_i, first_j), amount)
            np.add.at(corners, (last_i + 1, first_j), -amount)
            np.add.at(corners, (first_i, last_j + 1), -amount)
            np.add.at(corners, (last_i + 1, last_j + 1), amount)
        sums = corners.cumsum(axis=0).cumsum(axis=1)[: self.places + 1, : self.places + 1]
        return np.ascontiguousarray(sums)


def touching(places: int, uses: Sequence[Sequence[int]], after: Sequence[int]) -> Rectangles:
    """Intervals that hold at least one of the ascending places `uses[item]` and start after place `after[item]`.

    For a received tensor: the places of its readers, and the place of its producer.
    For a held parameter: the places of its operators, and -1.
    """
    rectangles: list[Rectangle] = []
    for item, used in enumerate(uses):
        previous = after[item]
        for place in used:
            if place > previous:
                rectangles.append((item, previous + 1, place, place + 1, places))
                previous = place
    return Rectangles(places, tuple(rectangles))


def leaving(places: int, producers: Sequence[int], last_readers: Sequence[int]) -> Rectangles:
    """Intervals that hold the producer of an item and end before its last reader."""
    return Rectangles(
        places,
        tuple(
            (item, 0, producer, producer + 1, last)
            for item, (producer, last) in enumerate(zip(producers, last_readers, strict=True))
            if last > producer
        ),
    )


class Intervals:
    """Sums of all intervals of an order of groups of operators, indexed [i, j]; entries with i >= j mean nothing.

    Equal to what CostModel says of the same stage in a plan whose stages are intervals of the order.
    A constant operator may be in several groups, if in all that read from it; any other operator is in one.
    relay: a tensor passes through every stage between its producer and its last reader.
    """

    def __init__(self, graph: OperatorGraph, groups: Sequence[Sequence[int]], relay: bool = False) -> None:
        self.graph = graph
        self.places = len(groups)
        self.relay = relay
        holders: list[list[int]] = [[] for _ in graph.operators]
        for place, members in enumerate(groups):
            for operator in dict.fromkeys(members):
                holders[operator].append(place)
        self._holders = holders
        self._single = all(len(each) <= 1 for each in holders)
        self.crossing: list[int] = []
        """Tensors that cross some cut of the order."""
        self.producer_places: list[int] = []
        """The place of the producer of each of them."""
        self.last_places: list[int] = []
        """The place of the last reader of each of them."""
        readers: list[list[int]] = []
        for tensor, producer in enumerate(graph.producers):
            if producer < 0:
                continue
            places = sorted({place for reader in graph.consumers[tensor] for place in holders[reader]})
            if set(places) <= set(holders[producer]):
                continue
            self.crossing.append(tensor)
            self.producer_places.append(holders[producer][0])
            self.last_places.append(places[-1])
            readers.append(places)
        self._received = touching(self.places, readers, self.producer_places)
        self._sent = leaving(self.places, self.producer_places, self.last_places)
        self._largest: dict[bytes, IntArray] = {}

    def of_operators(self, amounts: IntArray) -> IntArray:
        """Sums over the operators of each interval; amounts: of every operator, shape (operators,)."""
        if not self._single:
            return self._operators.sums(amounts)
        prefix = np.zeros(self.places + 1, np.int64)
        places = np.array([each[0] if each else self.places for each in self._holders], np.int64)
        np.add.at(prefix, np.minimum(places + 1, self.places), np.where(places < self.places, amounts, 0))
        prefix = prefix.cumsum()
        return prefix[None, :] - prefix[:, None]

    @cached_property
    def _operators(self) -> Rectangles:
        return touching(self.places, self._holders, [-1] * len(self._holders))

    @cached_property
    def parameter_bytes(self) -> IntArray:
        """Weights of each interval, each parameter once."""
        return self._of_parameters(self.graph.parameter_bytes)

    @cached_property
    def expert_bytes(self) -> IntArray:
        """Of them those of experts that ranks share out."""
        return self._of_parameters(self.graph.expert_bytes)

    def _of_parameters(self, sizes: Mapping[str, int]) -> IntArray:
        users: dict[str, set[int]] = {}
        for operator, places in zip(self.graph.operators, self._holders, strict=True):
            for name in operator.parameters:
                users.setdefault(name, set()).update(places)
        amounts = np.array([sizes[name] for name in users], np.int64)
        return touching(self.places, [sorted(each) for each in users.values()], [-1] * len(users)).sums(amounts)

    def incoming_sums(self, amounts: IntArray) -> IntArray:
        """Sums over the tensors that each interval receives, each tensor once.

        amounts: one for each tensor.
        """
        if self.relay:
            return np.broadcast_to(self.at_cuts(amounts)[:, None], (self.places + 1, self.places + 1))
        return self._received.sums(amounts[self.crossing])

    def outgoing_sums(self, amounts: IntArray) -> IntArray:
        """Sums over the tensors that leave each interval, each tensor once.

        amounts: one for each tensor.
        """
        if self.relay:
            return np.broadcast_to(self.at_cuts(amounts)[None, :], (self.places + 1, self.places + 1))
        return self._sent.sums(amounts[self.crossing])

    def at_cuts(self, amounts: IntArray) -> IntArray:
        """For each cut c (before place c) the sum over tensors made before it and read behind it, (n + 1,)."""
        steps = np.zeros(self.places + 2, dtype=np.int64)
        crossing = amounts[self.crossing]
        np.add.at(steps, np.asarray(self.producer_places, dtype=np.int64) + 1, crossing)
        np.add.at(steps, np.asarray(self.last_places, dtype=np.int64) + 1, -crossing)
        sums: IntArray = steps.cumsum()[: self.places + 1]
        return sums

    def model_inputs(self, amounts: IntArray) -> IntArray:
        """Sums over the inputs of the model that each interval reads, each once; amounts: of every tensor."""
        tensors, rectangles = self._model_inputs
        return rectangles.sums(amounts[tensors])

    @cached_property
    def _model_inputs(self) -> tuple[list[int], Rectangles]:
        tensors = [tensor for tensor, producer in enumerate(self.graph.producers) if producer < 0]
        readers = [
            sorted({place for reader in self.graph.consumers[tensor] for place in self._holders[reader]})
            for tensor in tensors
        ]
        return tensors, touching(self.places, readers, [-1] * len(tensors))

    def largest(self, amounts: IntArray) -> IntArray:
        """The largest amount among the operators of each interval; amounts: of every operator."""
        key = amounts.tobytes()
        if key not in self._largest:
            self._largest[key] = self._largest_of(amounts)
        return self._largest[key]

    def _largest_of(self, amounts: IntArray) -> IntArray:
        most = np.zeros(self.places, np.int64)
        for amount, places in zip(amounts.tolist(), self._holders, strict=True):
            for place in places:
                most[place] = max(int(most[place]), amount)
        table = np.zeros((self.places + 1, self.places + 1), np.int64)
        if most.any():
            for first in range(self.places):
                np.maximum.accumulate(most[first:], out=table[first, first + 1 :])
        return table

    @cached_property
    def _largest_weights(self) -> IntArray:
        """Weights of the operator of each interval that has the most, [i, j]."""
        return self.largest(np.array(self.graph.weight_bytes, np.int64))

    def compute_ns(self, terms: Terms) -> tuple[IntArray, IntArray, IntArray]:
        """Forward, backward and weight-gradient ns of each interval, for `Formula.times`, [i, j]."""
        return (
            self.of_operators(terms.forward_ns),
            self.of_operators(terms.backward_ns),
            self.of_operators(terms.weight_gradient_ns),
        )

    def holdings(self, terms: Terms, recompute: bool = True) -> Holdings[IntArray]:
        """The content of each interval as a stage of plain operators, for `Formula.memory`, indexed [i, j].

        recompute: whether stages may recompute. Without it the inputs are left at 0.
        State and gathered weights are left at 0, because they depend on the replicas (`with_state`).
        """
        none = np.zeros((1, 1), np.int64)
        inputs = (
            self.incoming_sums(terms.tensor_bytes) + self.model_inputs(terms.tensor_bytes) if recompute else none
        )
        return Holdings(
            state_bytes=none,
            saved_bytes=self.of_operators(terms.saved_bytes),
            input_bytes=inputs,
            buffer_bytes=self.incoming_sums(terms.exchanged_bytes) + self.outgoing_sums(terms.exchanged_bytes),
            workspace_bytes=self.largest(terms.workspace_bytes),
            fixed_bytes=none,
            transient_bytes=none,
            unit_bytes=none,
        )

    def with_state(self, content: Holdings[IntArray], formula: Formula, replicas: int) -> Holdings[IntArray]:
        """The same content with the state of each interval's weights.

        replicas: they share the state, or the weights as well, where these are sharded.
        """
        return replace(
            content,
            state_bytes=formula.state_bytes(self.parameter_bytes, replicas),
            unit_bytes=self._largest_weights if formula.holders(replicas) > 1 else content.unit_bytes,
        )
