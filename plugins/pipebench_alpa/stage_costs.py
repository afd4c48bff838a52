"""Submeshes of a cluster, and the time and memory of every interval of layers on each of them."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.compute import OperatorTimes
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import NS_PER_S, FloatArray, IntArray
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem


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


def interval_costs(
    problem: Problem,
    layers: list[tuple[int, ...]],
    offered: list[LogicalShape],
    micro_batch: int,
    limit_bytes: int,
) -> tuple[FloatArray, IntArray]:
    """(layers, layers + 1, shapes) seconds of a micro-batch, and how many stages may come behind (-1: none).

    The whole cluster is for all layers only. Behind: what the stage holds fits with s micro-batches live,
    by the formulas of the suite without workspace and transfer buffers, a parameter counted with each operator.
    """
    count = len(layers)
    costs = problem.profile.on(problem.cluster.devices[0])
    times = OperatorTimes(costs)
    graph = problem.profile.graph
    seconds = np.full((count, count + 1, len(offered)), np.inf)
    deepest = np.full((count, count + 1, len(offered)), -1, np.int64)
    formula = Formula(problem.regime, problem.mini_batch)
    for column, shape in enumerate(offered):
        samples = micro_batch // shape.data_parallel
        every = formula.every_stage(shape.data_parallel)
        no_weights = formula.state_bytes(0, shape.data_parallel)
        spent, held, saved = (np.zeros(len(costs.operators)) for _ in range(3))
        for position, name in enumerate(ways(problem, shape, micro_batch)):
            operator = costs.operators[position]
            spent[position] = sum(times.choice_ns(position, name, samples)[:2]) / NS_PER_S
            each = operator.alternative(name) if name else None
            weights = (
                each.parameter_bytes
                if each
                else sum(graph.parameter_bytes[p] for p in graph.operators[position].parameters)
            )
            held[position] = formula.state_bytes(weights, shape.data_parallel) - no_weights
            held[position] += each.fixed_bytes if each else 0
            saved[position] = (each or operator).saved_bytes_per_sample * samples
        adding = formula.live_bytes(saved) - formula.live_bytes(0)
        sums = [_up_to(values, layers) for values in (spent, held, adding)]
        between = [total[None, :] - total[:-1, None] for total in sums]
        here = np.arange(count + 1)[None, :] > np.arange(count)[:, None]
        if shape.devices == problem.cluster.size:
            here &= (np.arange(count + 1)[None, :] == count) & (np.arange(count)[:, None] == 0)
        free = (limit_bytes - every.once) - between[1]
        live = between[2] + every.per_micro_batch
        most = np.where(live > 0, np.floor(free / np.where(live > 0, live, 1.0)), MOST_BEHIND)
        seconds[:, :, column] = np.where(here, between[0], np.inf)
        deepest[:, :, column] = np.where(
            here & (free >= 0), np.clip(most, 0, MOST_BEHIND).astype(np.int64) - 1, -1
        )
    return seconds, deepest


def _up_to(values: FloatArray, layers: list[tuple[int, ...]]) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum([values[list(layer)].sum() for layer in layers])])
