"""A lower bound on time from what links cannot carry: operators that stay together, and the devices they need.

In a time in which no link carries a tensor there and back, its producer and its readers are on one device. Such
bundles of operators are packed onto devices as wholes. Docs: cost-model.md, section 11, "Links".
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipebench.bounds.choices import COMPUTE, CROSSING, FORWARD, UPDATE
from pipebench.bounds.operators import cuts, least, most_replicas, ways
from pipebench.bounds.shared import Shared
from pipebench.bounds.spine import before_each
from pipebench.costs.formula import Formula
from pipebench.costs.messages import slowest
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Problem

Link = tuple[int, int, int]
"""Producer, reader, and the ns for which a link is busy with the tensor in a mini-batch."""


@dataclass(frozen=True, slots=True)
class LinksProof:
    """No plan takes less than `claimed_ns`. `certificates.bound_kinds.links_bound` checks it.

    devices: that a plan uses, at most. every_ns: what each runs once a mini-batch whatever it holds.
    loads_ns: of each operator what it takes of its device; whole: 1 with weight gradients and updates, 0 without.
    forward_ns, back_ns: of each operator for one micro-batch, its forward and its input gradient; 0 where devices
    do not wait for each other, and back_ns also where `whole` is 1.
    links: the tensors that a device would send to another one.
    first: an operator; devices without its bundle wait for what is before theirs.
    threshold_ns: loads below it are left out where devices are counted.
    """

    claimed_ns: int
    devices: int
    every_ns: int
    whole: int
    loads_ns: tuple[int, ...]
    forward_ns: tuple[int, ...]
    back_ns: tuple[int, ...]
    links: tuple[Link, ...]
    first: int
    threshold_ns: int

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def links_proof(problem: Problem, shared: Shared, time_ns: int) -> LinksProof | None:
    """The proof of the largest time from links that is above `time_ns`. None where there is none.

    For problems in which every stage has one replica on one device: with more, a tensor crosses in parts.
    """
    if not _one_device_a_stage(problem):
        return None
    found = None
    for whole in (True, False) if shared.lasting else (True,):
        packing = Packing(problem, shared, whole)
        raised = packing.raised(time_ns)
        if raised > time_ns:
            time_ns, found = raised, packing.proof(raised)
    return found


def _one_device_a_stage(problem: Problem) -> bool:
    """Whether no operator is on more than one device, or all of a stage's devices run all of it."""
    step, tensor_parallel = problem.regime.step, problem.pins.tensor_parallel
    shares = step is not None and step.splits_messages and tensor_parallel != 1
    return (
        problem.cluster.size > 1
        and most_replicas(problem) == 1
        and not shares
        and all((rows.devices == 1).all() for rows in ways(problem))
    )


class Packing:
    """The bundles of a problem, and whether they fit onto its devices in a time.

    whole: loads have weight gradients and updates, and devices wait before their first task. Otherwise loads have
    neither, and devices wait at both ends.
    """

    def __init__(self, problem: Problem, shared: Shared, whole: bool) -> None:
        self._problem, self._shared, self._whole = problem, shared, whole
        self._graph = problem.profile.graph

    def raised(self, time_ns: int) -> int:
        """The largest time that is found to be needed, at least `time_ns`."""
        if self.threshold_ns(time_ns) is None:
            return time_ns
        low, high = time_ns, 2 * time_ns + 1
        while self.threshold_ns(high) is not None:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self.threshold_ns(middle) is None:
                high = middle
            else:
                low = middle
        return low + 1

    def threshold_ns(self, time_ns: int) -> int | None:
        """A threshold by which the bundles need too many devices; None where none shows that."""
        bundle = self._bundles(time_ns)
        loads = np.zeros_like(self._loads)
        np.add.at(loads, bundle, self._loads)
        first = bundle[self._first]
        waited = min(self._waited_ns(bundle != first), int(loads[first]))
        loads[first] -= waited
        capacity = time_ns - self._shared.every_ns - waited
        if int(loads.max()) > capacity:
            return 0
        needed, threshold = fewest_devices(np.sort(loads[loads > 0]), capacity)
        return threshold if needed > self._shared.devices else None

    def proof(self, claimed_ns: int) -> LinksProof:
        """The proof that no plan takes less than a time that `raised` gave."""
        threshold = self.threshold_ns(claimed_ns - 1)
        assert threshold is not None
        return LinksProof(
            claimed_ns=claimed_ns,
            devices=self._shared.devices,
            every_ns=self._shared.every_ns,
            whole=int(self._whole),
            loads_ns=tuple(self._loads.tolist()),
            forward_ns=tuple(self._forward.tolist()),
            back_ns=tuple(self._back.tolist()),
            links=self._links,
            first=self._first,
            threshold_ns=threshold,
        )

    def _bundles(self, time_ns: int) -> IntArray:
        """For each operator the number of its bundle: that of one of its operators."""
        of = list(range(len(self._graph.operators)))

        def root(operator: int) -> int:
            while of[operator] != operator:
                of[operator] = operator = of[of[operator]]
            return operator

        for producer, reader, ns in self._links:
            if ns > time_ns:
                of[root(producer)] = root(reader)
        return np.array([root(operator) for operator in of], np.int64)

    def _waited_ns(self, others: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
        """How long a device waits at least that holds none but these of the operators that take time."""
        counted = others & (self._loads > 0)
        if not counted.any():
            return 0
        return int(self._before[counted].min()) + int(self._behind[counted].min())

    @cached_property
    def _loads(self) -> IntArray:
        rows, columns = self._shared.choices.rows, (COMPUTE, UPDATE) if self._whole else (CROSSING,)
        taken = sum(rows[:, column] for column in columns)
        each = np.minimum.reduceat(taken, self._shared.choices.first[:-1])
        loads: IntArray = each[self._shared.choices.of_operator].astype(np.int64)
        return loads

    @cached_property
    def _forward(self) -> IntArray:
        forward = self._shared.choices.least(FORWARD).astype(np.int64)
        return forward if self._waits else 0 * forward

    @cached_property
    def _back(self) -> IntArray:
        if not self._waits or self._whole:
            return np.zeros(len(self._graph.operators), np.int64)
        back = least(self._problem, lambda rows, cut: rows.crossing_ns(cut.samples) - rows.forward_ns(cut.samples))
        constant = np.array([operator.constant for operator in self._graph.operators])
        return np.where(constant, 0, back)

    @property
    def _waits(self) -> bool:
        """With an overlap an operator that adds nothing to its lane may take time all the same."""
        return self._shared.lasting and not self._problem.overlap

    @cached_property
    def _before(self) -> IntArray:
        return before_each(self._graph, self._forward)

    @cached_property
    def _behind(self) -> IntArray:
        return before_each(self._graph, self._back)

    @cached_property
    def _first(self) -> int:
        """Of the operators that take time the one that waits least."""
        waited = np.where(self._loads > 0, self._before + self._behind, np.iinfo(np.int64).max)
        return int(waited.argmin())

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        """Edges between operators that depend on the input, by producer and reader."""
        problem, graph = self._problem, self._graph
        if problem.cluster.link_mode == "delay":
            return ()
        model, half = CostModel(problem), problem.cluster.link_mode == "half"
        levels = {slowest(problem.cluster, one, one + 1) for one in range(problem.cluster.size - 1)}
        sizes = {(cut.runs, cut.samples) for cut in cuts(problem)}

        def least_ns(sent_bytes: Callable[[int, int], int], tensor: int) -> int:
            return min(runs * _message_ns(levels, sent_bytes(tensor, samples)) for runs, samples in sizes)

        busy: dict[tuple[int, int], int] = {}
        for tensor, producer in enumerate(graph.producers):
            if producer < 0 or graph.operators[producer].constant or not graph.consumers[tensor]:
                continue
            there, back = least_ns(model.tensor_bytes, tensor), least_ns(model.gradient_bytes, tensor)
            for reader in graph.consumers[tensor]:
                edge = producer, reader
                busy[edge] = max(busy.get(edge, 0), there + back if half else max(there, back))
        return tuple((*edge, ns) for edge, ns in sorted(busy.items()) if ns)


def _message_ns(levels: set[LinkLevel], sent_bytes: int) -> int:
    return min(int(Formula.message_ns(level, sent_bytes, 1, 1)) for level in levels)


def fewest_devices(loads: IntArray, capacity: int) -> tuple[int, int]:
    """A lower bound on the devices of `capacity` that hold all loads as wholes, and the threshold that shows it.

    loads: ascending, each above 0 and at most the capacity. Martello and Toth, Lower bounds and reduction
    procedures for the bin packing problem, Discrete Applied Mathematics 28 (1990), bound L2. For a threshold t at
    most half the capacity C: loads above C - t share a device with none of t or more; those above C / 2 are on a
    device each; and what loads from t to C / 2 take beyond the room that is left beside these needs more devices.
    """
    if not len(loads):
        return 0, 0
    summed = np.concatenate([[0], loads.cumsum()])
    half = int(np.searchsorted(2 * loads, capacity, "right"))
    thresholds = np.concatenate([[0], np.unique(loads[:half])])
    alone = np.searchsorted(loads, capacity - thresholds, "right")
    least = np.searchsorted(loads, thresholds, "left")
    paired = alone - half
    room = paired * capacity - (summed[alone] - summed[half])
    over = np.maximum(0, summed[half] - summed[least] - room)
    needed = (len(loads) - half) + -(-over // capacity)
    best = int(needed.argmax())
    return int(needed[best]), int(thresholds[best])
