"""What Piper knows of a problem: the ways to run each operator at each tensor-parallel degree, and the edges."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipebench.algorithms.micro_batches import honours_size
from pipebench.costs.formula import Formula, Memory
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.recomputation import permits
from pipebench_piper.released_costs import added_bytes, compute_s, crossing_bytes, synchronisation_s

MOST_DEVICES = 8192


@dataclass(frozen=True, slots=True)
class StageWay:
    """A tensor-parallel and a data-parallel degree of a stage.

    samples: of a micro-batch on one replica.
    turns: replicas that take micro-batches in turn; 1 where all share each of them.
    """

    tensor_parallel: int
    data_parallel: int
    samples: int
    turns: int

    @property
    def devices(self) -> int:
        """Devices of the stage."""
        return self.tensor_parallel * self.data_parallel

    def live(self, in_flight: int) -> int:
        """Micro-batches that one replica keeps, of `in_flight` from this stage on.

        The stage itself adds `turns` to them.
        """
        return -(-in_flight // self.turns)


class CostTables:
    """Arrays of one problem at one micro-batch size.

    micro_batch: samples of one micro-batch.
    replicas: how the replicas of a stage share micro-batches; in Piper they take them in turn.
    """

    def __init__(self, problem: Problem, micro_batch: int, replicas: ReplicaMode) -> None:
        self.problem = problem
        self.micro_batch = micro_batch
        self.replicas = replicas
        self.micro_batches = problem.mini_batch // micro_batch
        self.formula = Formula(problem.regime, problem.mini_batch)
        costs = problem.profile.on(problem.cluster.devices[0])
        self._times = OperatorTimes(costs)
        self._operators = costs.operators
        graph = problem.profile.graph
        self.nodes = len(graph.operators)
        edges = [
            (producer, reader, tensor)
            for tensor, (producer, readers) in enumerate(zip(graph.producers, graph.consumers, strict=True))
            if producer >= 0
            for reader in readers
        ]
        self.tensors = [tensor for _, _, tensor in edges]
        self.edges: IntArray = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2)
        self.bandwidth = problem.cluster.flat(problem.cluster.size).bandwidth_bytes_s

    @cached_property
    def shared_weights(self) -> bool:
        """Whether several operators use one parameter: each then counts it, and the suite only one of them."""
        used = [name for operator in self.problem.profile.graph.operators for name in operator.parameters]
        return len(used) > len(set(used))

    @cached_property
    def exchanged(self) -> dict[tuple[int, ...], float]:
        """Bytes a sample that stages exchange each way, at least, by the operators that make or read them."""
        graph = self.problem.profile.graph
        found: dict[tuple[int, ...], float] = {}
        for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
            ends = tuple(sorted({producer, *readers}))
            least = min(tensor.forward_bytes_per_sample, tensor.gradient_bytes_per_sample)
            if producer >= 0 and len(ends) > 1 and least > 0:
                found[ends] = found.get(ends, 0.0) + least
        return found

    def buffered_samples(self, way: StageWay) -> int:
        """Samples of each tensor that crosses, and of its gradient, that a device has buffers for together."""
        return 2 * way.samples

    @cached_property
    def choices(self) -> dict[int, list[list[Alternative | None]]]:
        """For each tensor-parallel degree the ways to run each operator; None is the plain one.

        Plain counts at degree 1 unless an alternative of degree 1 says the same; at any other degree only for
        operators that have no alternative of a degree above 1 (every device then computes all of them).
        """
        degrees = sorted({1} | {a.tensor_parallel for costs in self._operators for a in costs.alternatives})
        pinned, recompute = self.problem.pins.tensor_parallel, self.problem.pins.recompute
        found = {}
        for degree in degrees:
            if pinned in (None, degree) and degree <= self.problem.cluster.size:
                offered = [_alternatives_at(costs, degree) for costs in self._operators]
                found[degree] = [
                    [way for way in each if permits(recompute, operator, way)]
                    for operator, each in zip(self.problem.profile.graph.operators, offered, strict=True)
                ]
        for node, operator in enumerate(self.problem.profile.graph.operators):
            if found and not any(offered[node] for offered in found.values()):
                raise UnsupportedProblem(
                    f"operator {operator.name!r} has no alternative that honours the pins",
                    "profile it with alternatives (tensor parallel, recompute), or pin less",
                )
        if pinned is not None and pinned not in found:
            raise UnsupportedProblem(
                f"tensor_parallel is pinned to {pinned}, the profile has alternatives for "
                f"{', '.join(map(str, degrees))}"
            )
        return found

    @cached_property
    def ways(self) -> list[StageWay]:
        """Degrees that a stage may have.

        In turn: data-parallel ones divide the micro-batches of the mini-batch. Else they divide the micro-batch.
        Where the samples of one replica are pinned, those that give them.
        """
        devices, pinned = self.problem.cluster.size, self.problem.pins.data_parallel
        in_turn = self.replicas == "round_robin"
        whole = self.micro_batches if in_turn else self.micro_batch
        found = []
        for tensor in self.choices:
            for data in range(1, min(devices // tensor, whole) + 1):
                turns = data if in_turn else 1
                honoured = honours_size(self.problem, self.micro_batch, data // turns)
                even = whole % data == 0 and self.problem.regime.shards_evenly(data)
                if even and pinned in (None, data) and honoured:
                    found.append(StageWay(tensor, data, self.micro_batch * turns // data, turns))
        if pinned is not None and whole % pinned:
            raise UnsupportedProblem(
                f"data_parallel is pinned to {pinned}, which does not divide the {whole} "
                f"{'micro-batches of a mini-batch' if in_turn else 'samples of a micro-batch'}"
            )
        if not found:
            raise UnsupportedProblem("no degrees of data and tensor parallelism honour the pins")
        return found

    @property
    def most_in_flight(self) -> int:
        """Bound on the sum in flight: degrees of all stages, no more than there are devices or micro-batches."""
        return min(self.micro_batches, self.problem.cluster.size)

    def of_way(self, way: StageWay) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """(operators, alternatives) seconds with the synchronisation, saved and fixed bytes; how many there are.

        Seconds for one micro-batch in the stage's steady state, see `released_costs`. Bytes are those that an
        operator adds to `every_stage`.
        """
        offered = self.choices[way.tensor_parallel]
        widest = max(1, *(len(each) for each in offered))
        time, saved = np.zeros((self.nodes, widest)), np.zeros((self.nodes, widest))
        weights, fixed = np.zeros((self.nodes, widest), np.int64), np.zeros((self.nodes, widest), np.int64)
        count = np.array([len(each) for each in offered], np.int64)
        replicas = way.data_parallel
        formula, graph = self.formula, self.problem.profile.graph
        for node, each in enumerate(offered):
            for position, alternative in enumerate(each):
                if alternative is None:
                    weights[node, position] = graph.weight_bytes[node]
                    keeps = self._operators[node].saved_bytes_per_sample
                else:
                    weights[node, position] = alternative.parameter_bytes
                    fixed[node, position] = alternative.fixed_bytes
                    keeps = alternative.saved_bytes_per_sample
                time[node, position] = compute_s(self._times, node, alternative, way.samples) / way.turns
                saved[node, position] = keeps * way.samples
        time += synchronisation_s(weights, formula.holders(replicas), self.micro_batches, self.bandwidth)
        fixed += formula.state_bytes(weights, replicas) - formula.state_bytes(0, replicas)
        live: FloatArray = formula.live_bytes(saved) - formula.live_bytes(0)
        return time, live, fixed.astype(np.float64), count

    def every_stage(self, way: StageWay) -> Memory[int]:
        """The memory of a stage of these degrees without any operator."""
        return self.formula.every_stage(way.data_parallel)

    def crossing(self, degree: int) -> tuple[FloatArray, FloatArray]:
        """(edges, alternatives) bytes that an edge costs for a micro-batch at its consumer and at its producer."""
        graph = self.problem.profile.graph
        offered = self.choices[degree]
        widest = max(1, *(len(each) for each in offered))
        into, out = np.zeros((len(self.edges), widest)), np.zeros((len(self.edges), widest))
        for edge, (producer, consumer) in enumerate(self.edges):
            tensor = graph.tensors[self.tensors[edge]]
            for ends, node in ((into, consumer), (out, producer)):
                ends[edge] = crossing_bytes(tensor, self.micro_batch)
                for position, alternative in enumerate(offered[node]):
                    if alternative is not None and tensor.name in alternative.boundary_bytes:
                        ends[edge, position] += added_bytes(tensor, alternative, self.micro_batch)
        return into, out


def _alternatives_at(costs: OperatorCosts, degree: int) -> list[Alternative | None]:
    given: list[Alternative | None] = [a for a in costs.alternatives if a.tensor_parallel == degree]
    if degree == 1:
        same = any(
            (a.forward_s, a.backward_s) == (costs.forward_s, costs.backward_s) and not a.recompute
            for a in given
            if a is not None
        )
        return given if same else [None, *given]
    if any(a.tensor_parallel > 1 for a in costs.alternatives):
        return given
    return [None]
