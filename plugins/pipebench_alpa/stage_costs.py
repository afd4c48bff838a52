"""Submeshes of a cluster, and the time and memory of every interval of layers on each of them."""

from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.micro_batches import honours_size
from pipebench.costs.formula import Formula, Holdings
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S, FloatArray, IntArray, whole_bytes
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.costs.sums.intervals import Intervals
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_alpa.plugin import MemoryCount


def hosts_of(cluster: Cluster) -> tuple[int, int]:
    """Hosts and devices of each: the groups of the innermost level, one host where there is no other level.

    Raises UnsupportedProblem where they are not alike or not a power of two.
    """
    each = min(cluster.levels[0].group, cluster.size)
    if cluster.size % each or each & (each - 1):
        raise UnsupportedProblem(
            f"alpa-inter needs hosts of a power of two of devices, all alike; {cluster.size} devices are in hosts "
            f"of {each}"
        )
    return cluster.size // each, each


def submesh_sizes(hosts: int, each: int, every: bool) -> list[int]:
    """Numbers of devices, ascending; the whole cluster is the last."""
    sizes = [2**power for power in range(each.bit_length())]
    rows = range(2, hosts + 1) if every else (2**power for power in range(1, hosts.bit_length()))
    return sorted({*sizes, *(rows_of * each for rows_of in rows), hosts * each})


MOST_BEHIND = 1 << 20


@dataclass(frozen=True, slots=True)
class LogicalShape:
    """A logical shape of a submesh."""

    data_parallel: int
    tensor_parallel: int

    @property
    def devices(self) -> int:
        """Devices of the submesh."""
        return self.data_parallel * self.tensor_parallel


def logical_shapes(problem: Problem, sizes: list[int], most_tensor: int, micro_batch: int) -> list[LogicalShape]:
    """Logical shapes of all submeshes that honour the pins; degrees of data parallelism divide the micro-batch."""
    pins = problem.pins
    return [
        LogicalShape(size // tensor, tensor)
        for size in sizes
        for tensor in range(1, min(size, most_tensor) + 1)
        if size % tensor == 0
        and micro_batch % (size // tensor) == 0
        and pins.tensor_parallel in (None, tensor)
        and pins.data_parallel in (None, size // tensor)
        and honours_size(problem, micro_batch, size // tensor)
        and problem.regime.shards_evenly(size // tensor)
    ]


def ways(problem: Problem, shape: LogicalShape, micro_batch: int) -> list[str]:
    """For each operator the fastest way at that degree that does not recompute; '' is the plain one."""
    costs = problem.profile.on(problem.cluster.devices[0])
    times = OperatorTimes(costs)
    samples = micro_batch // shape.data_parallel
    chosen = []
    for position, operator in enumerate(costs.operators):
        offered = [
            a.id for a in operator.alternatives if a.tensor_parallel == shape.tensor_parallel and not a.recompute
        ]
        if shape.tensor_parallel == 1 or not offered:
            offered = ["", *offered]
        chosen.append(min(offered, key=lambda name: sum(times.choice_ns(position, name, samples)[:2])))
    return chosen


@dataclass(frozen=True, slots=True)
class _ShapeTerms:
    """What each operator takes at one shape, by the alternatives that run there, shape (operators,).

    seconds: of a micro-batch. weights: bytes on a device. saved: bytes of one micro-batch, not rounded.
    """

    ways: list[str]
    seconds: FloatArray
    weights: IntArray
    saved: FloatArray
    fixed: IntArray
    transient: IntArray


def _terms(problem: Problem, shape: LogicalShape, micro_batch: int) -> _ShapeTerms:
    costs = problem.profile.on(problem.cluster.devices[0])
    times, graph = OperatorTimes(costs), problem.profile.graph
    samples = micro_batch // shape.data_parallel
    count = len(costs.operators)
    found = _ShapeTerms(
        ways(problem, shape, micro_batch),
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
    )
    for position, name in enumerate(found.ways):
        operator = costs.operators[position]
        each = operator.alternative(name) if name else None
        found.seconds[position] = sum(times.choice_ns(position, name, samples)[:2]) / NS_PER_S
        if each is None:
            found.weights[position] = graph.weight_bytes[position]
        else:
            found.weights[position] = each.parameter_bytes
            found.fixed[position] = each.fixed_bytes
            found.transient[position] = whole_bytes(each.transient_bytes_per_sample * samples)
        found.saved[position] = (each or operator).saved_bytes_per_sample * samples
    return found


def interval_costs(
    problem: Problem,
    layers: list[tuple[int, ...]],
    offered: list[LogicalShape],
    micro_batch: int,
    limit_bytes: int,
    count: MemoryCount,
) -> tuple[FloatArray, IntArray]:
    """(layers, layers + 1, shapes) seconds of a micro-batch, and how many stages may come behind (-1: none).

    The whole cluster is for all layers only. Behind: what the stage holds fits with s micro-batches live, by
    the formulas of the suite; count: see `AlpaOptions`.
    """
    places = len(layers)
    seconds = np.full((places, places + 1, len(offered)), np.inf)
    deepest = np.full((places, places + 1, len(offered)), -1, np.int64)
    intervals = Intervals(problem.profile.graph, layers)
    for column, shape in enumerate(offered):
        terms = _terms(problem, shape, micro_batch)
        spent = _sums(terms.seconds, layers)
        here = np.arange(places + 1)[None, :] > np.arange(places)[:, None]
        if shape.devices == problem.cluster.size:
            here &= (np.arange(places + 1)[None, :] == places) & (np.arange(places)[:, None] == 0)
        if count == "suite":
            most = suite_micro_batches(problem, intervals, shape, micro_batch, terms, limit_bytes)
        else:
            most = released_micro_batches(problem, layers, shape, terms, limit_bytes)
        seconds[:, :, column] = np.where(here, spent, np.inf)
        deepest[:, :, column] = np.where(here, np.minimum(most, MOST_BEHIND) - 1, -1)
    return seconds, deepest


def released_micro_batches(
    problem: Problem, layers: list[tuple[int, ...]], shape: LogicalShape, terms: _ShapeTerms, limit_bytes: int
) -> IntArray:
    """The most micro-batches that an interval may hold, 0 where it does not fit, shape (layers, layers + 1).

    Without workspace and transfer buffers, a parameter counted with each operator.
    """
    formula = Formula(problem.regime, problem.mini_batch)
    every = formula.every_stage(shape.data_parallel)
    no_weights = formula.state_bytes(0, shape.data_parallel)
    held = formula.state_bytes(terms.weights, shape.data_parallel) - no_weights + terms.fixed
    adding = formula.live_bytes(terms.saved) - formula.live_bytes(0)
    free = (limit_bytes - every.once) - _sums(held, layers)
    live = _sums(adding, layers) + every.per_micro_batch
    most = np.where(live > 0, np.floor(free / np.where(live > 0, live, 1.0)), MOST_BEHIND)
    return np.where(free >= 0, np.clip(most, 0, MOST_BEHIND), 0).astype(np.int64)


def suite_micro_batches(
    problem: Problem,
    intervals: Intervals,
    shape: LogicalShape,
    micro_batch: int,
    terms: _ShapeTerms,
    limit_bytes: int,
) -> IntArray:
    """The same by all of the suite's memory, as CostModel says it of the stage.

    All micro-batches of a mini-batch are the most that a stage ever holds.
    """
    formula, model = Formula(problem.regime, problem.mini_batch), CostModel(problem)
    plain = model.terms(micro_batch // shape.data_parallel)
    exchanged = plain.exchanged_bytes
    content = Holdings(
        state_bytes=formula.state_bytes(_weights(problem, intervals, terms), shape.data_parallel),
        saved_bytes=intervals.of_operators(whole_bytes(terms.saved)),
        input_bytes=np.zeros((1, 1), np.int64),
        buffer_bytes=intervals.incoming_sums(exchanged) + intervals.outgoing_sums(exchanged),
        workspace_bytes=intervals.largest(plain.workspace_bytes),
        fixed_bytes=intervals.of_operators(terms.fixed),
        transient_bytes=intervals.largest(terms.transient),
        unit_bytes=intervals.largest(terms.weights)
        if formula.holders(shape.data_parallel) > 1
        else np.zeros((1, 1), np.int64),
    )
    most = formula.memory(content, "none").most_live(limit_bytes)
    enough = most >= problem.mini_batch // micro_batch
    return np.where(enough, MOST_BEHIND, most)[:-1]


def _weights(problem: Problem, intervals: Intervals, terms: _ShapeTerms) -> IntArray:
    """Bytes of weights of each interval as CostModel.parameter_bytes counts them, [i, j].

    A parameter of several operators counts once; operators under alternatives that use the same parameters
    count once, with the largest of their bytes.
    """
    graph = problem.profile.graph
    users: dict[object, dict[int, int]] = {}
    for position, (name, operator) in enumerate(zip(terms.ways, graph.operators, strict=True)):
        if name and operator.parameters:
            users.setdefault(frozenset(operator.parameters), {})[position] = int(terms.weights[position])
        elif name:
            users[position] = {position: int(terms.weights[position])}
        for parameter in () if name else operator.parameters:
            users.setdefault(parameter, {})[position] = graph.parameter_bytes[parameter]
    alone = np.zeros(len(graph.operators), np.int64)
    total: IntArray = np.zeros((intervals.places + 1, intervals.places + 1), np.int64)
    for each in users.values():
        amounts = alone if len(each) == 1 else np.zeros_like(alone)
        for position, weight in each.items():
            amounts[position] += weight
        if len(each) > 1:
            total = total + intervals.largest(amounts)
    return total + intervals.of_operators(alone)


def _sums(values: FloatArray | IntArray, layers: list[tuple[int, ...]]) -> FloatArray:
    """(layers, layers + 1) sums over the operators of each interval."""
    total = np.concatenate([[0.0], np.cumsum([values[list(layer)].sum() for layer in layers])])
    sums: FloatArray = total[None, :] - total[:-1, None]
    return sums
