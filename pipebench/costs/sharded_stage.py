"""Costs of a stage whose operators are split over the devices of each replica.

A split divides an operator among the tensor-parallel devices of one replica; `batch` counts the samples of that
replica. Rings of one stage run side by side, as many as its devices allow; layouts are changed one after another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pipebench.costs.formula import Formula
from pipebench.costs.messages import slowest
from pipebench.costs.quantise import whole_bytes
from pipebench.costs.rings import Rings, ring_level
from pipebench.costs.sharding import Reduction, Split, held_share, reductions, reshard, share_of, sharers
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.cluster import Cluster, LinkLevel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.plan import Stage
from pipebench.domain.profile import OperatorCosts


def is_sharded(stage: Stage) -> bool:
    """Whether an operator of the stage is split over devices."""
    return any(parts > 1 for split in stage.sharding for parts in split.values())


def refuse_alternatives(stage: Stage) -> None:
    """Raise UnsupportedProblem for an operator that is split and runs by an alternative."""
    for name, split, choice in zip(stage.operators, stage.sharding, stage.choice, strict=False):
        if choice and any(parts > 1 for parts in split.values()):
            raise UnsupportedProblem(
                f"operator {name!r} is split over devices and runs by alternative {choice!r}",
                "leave its choice or its split empty",
            )


@dataclass(frozen=True)
class ShardedStage:
    """The operators of a stage with their splits. samples: of one replica."""

    graph: OperatorGraph
    stage: Stage
    samples: int
    cluster: Cluster

    def _each(self) -> Iterator[tuple[Operator, Split, int]]:
        """Operator, split, and the samples that one device has of it."""
        for name, split in zip(self.stage.operators, self.stage.sharding, strict=True):
            yield self.graph.operators[self.graph.index[name]], split, -(-self.samples // split.get("batch", 1))

    def _level(self, rings: int) -> LinkLevel:
        return ring_level(self.cluster, min(self.stage.devices), max(self.stage.devices), rings)

    def times(self, times: OperatorTimes) -> tuple[int, int, int]:
        """Forward, backward and weight-gradient ns of one micro-batch, with reductions and changes of layout.

        A split operator takes its time at the samples of one device, times the largest part of its other dims,
        rounded up to ns. An operator that is not split takes its plain time, or that of the stage's choice.
        """
        forward = backward = weight_gradient = 0
        choices = self.stage.choice or ("",) * len(self.stage.operators)
        for (operator, split, local), choice in zip(self._each(), choices, strict=True):
            share = share_of(operator, split)
            whole = times.choice_ns(self.graph.index[operator.name], choice, local)
            part = [_rounded_up(ns * share) for ns in whole]
            forward += part[0]
            backward += part[1]
            weight_gradient += part[2]
        there, back = self.communication()
        return forward + there, backward + back, weight_gradient

    def communication(self) -> tuple[int, int]:
        """The ns of forward and backward that reductions and changes of layout take."""
        forward, backward = self._relaid()
        for operator, split, _ in self._each():
            asked = reductions(self.graph, operator.name, split, self.samples)
            forward += self._all_reduce_ns(asked.forward)
            backward += self._all_reduce_ns(asked.backward)
        return forward, backward

    def _all_reduce_ns(self, asked: tuple[Reduction, ...]) -> int:
        ranks = self.stage.tensor_parallel
        return sum(
            Formula.all_reduce_ns(self._level(max(1, ranks // each.devices)), each.bytes, each.devices)
            for each in asked
        )

    def _relaid(self) -> tuple[int, int]:
        """Forward and backward ns of changing layouts inside the stage; each layout of a tensor is made once."""
        splits = dict(zip(self.stage.operators, self.stage.sharding, strict=True))
        level = slowest(self.cluster, min(self.stage.devices), max(self.stage.devices))
        made: set[tuple[object, ...]] = set()
        forward = backward = 0
        for reader, split in splits.items():
            operator = self.graph.operators[self.graph.index[reader]]
            for tensor in operator.inputs:
                producer = self.graph.tensors[self.graph.tensor_index[tensor]].producer
                if producer is None or producer not in splits:
                    continue
                layout = tuple(split.get(dim, 1) for dim in operator.axes.get(tensor, ("batch",)))
                if (tensor, *layout) in made:
                    continue
                made.add((tensor, *layout))
                needs = (tensor, splits[producer], reader, split, self.samples)
                forward += Formula.message_ns(level, reshard(self.graph, *needs), 1, 1)
                backward += Formula.message_ns(level, reshard(self.graph, *needs, backward=True), 1, 1)
        return forward, backward

    def weights(self) -> Mapping[int, int]:
        """Bytes of weights on each device, keyed by how many devices of a replica hold the same weights.

        These devices sum their gradients. A parameter of several operators counts once for each way they split it.
        """
        found: dict[tuple[str, Fraction, int], int] = {}
        for operator, split, _ in self._each():
            for name in operator.parameters:
                share = held_share(operator, name, split, self.samples)
                local = _rounded_up(self.graph.parameter_bytes[name] * share)
                found[name, share, sharers(operator, name, split)] = local
        groups: dict[int, int] = {}
        for (_, _, devices), local in found.items():
            groups[devices] = groups.get(devices, 0) + local
        return groups

    def largest_bytes(self, replicas: int) -> int:
        """Weights on each device of the operator that has the most of those that several devices hold."""
        each = []
        for operator, split, _ in self._each():
            held = [
                _rounded_up(self.graph.parameter_bytes[name] * held_share(operator, name, split, self.samples))
                for name in set(operator.parameters)
                if replicas * sharers(operator, name, split) > 1
            ]
            each.append(sum(held))
        return max(each)

    def weight_state(self, formula: Formula, replicas: int) -> int:
        """Bytes of weights, gradients and optimizer state on each device. replicas: those of all pipelines and
        copies.

        The state that every stage has counts once, however many groups of devices hold the same weights.
        """
        every = formula.state_bytes(0, replicas)
        return every + sum(
            formula.state_bytes(local, replicas * devices) - every for devices, local in self.weights().items()
        )

    def all_reduce_ns(self, formula: Formula, replicas: int, links: Rings) -> int:
        """Rings over the replicas and over the devices of each that hold the same weights, one after the other."""
        total = 0
        for devices, local in sorted(self.weights().items()):
            rings = max(1, self.stage.tensor_parallel // devices)
            total += formula.reduce_ns(links(rings), local, devices * replicas)
        return total

    def saved_bytes(self, costs: Mapping[str, OperatorCosts]) -> int:
        """Bytes that one device saves for a live micro-batch.

        The profile gives one figure for each operator. The operator is assumed to save its inputs, then its
        outputs, until the figure is reached, each split as the operator splits it. What remains is split as little
        as any of them.
        """
        return sum(
            self._operator_saved_bytes(operator, split, local, costs) for operator, split, local in self._each()
        )

    def _operator_saved_bytes(
        self, operator: Operator, split: Split, local: int, costs: Mapping[str, OperatorCosts]
    ) -> int:
        left = costs[operator.name].saved_bytes_per_sample
        rest = {dim: parts for dim, parts in split.items() if dim != "batch"}
        made = [self.graph.tensors[t].name for t in self.graph.outputs[self.graph.index[operator.name]]]
        total, largest = 0.0, Fraction(0)
        for name in (*operator.inputs, *made):
            size = self.graph.tensors[self.graph.tensor_index[name]].forward_bytes_per_sample
            share = held_share(operator, name, rest, 1)
            largest = max(largest, share)
            taken = min(left, size)
            total += taken * float(share)
            left -= taken
        return whole_bytes((total + left * float(largest or 1)) * local)


def _rounded_up(amount: Fraction | int) -> int:
    return -(-amount.numerator // amount.denominator)
