"""What the DP knows of a problem: latencies on both kinds of device, sizes and outputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pipebench.costs.memory import weight_state_bytes

from pipebench.costs.compute import OperatorTimes
from pipebench.costs.quantise import FloatArray
from pipebench.domain.problem import Problem

CPU = "cpu"
SHARED = "->"
"""Tensors whose names are equal up to here are one output that is sent once (formats.tarnawski_graph)."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Nodes (sets of operators) with their latencies in s and bytes; outputs as node sets with seconds to send.

    foreign: 1 for nodes that no accelerator runs. successors: of each node, by colour class where the profile has
    them (the order in which the released program follows them).
    """

    members: tuple[tuple[int, ...], ...]
    latency: FloatArray
    cpu_latency: FloatArray
    size: FloatArray
    foreign: FloatArray
    successors: list[list[int]]
    outputs: dict[tuple[int, ...], float]


def accelerator_type(problem: Problem) -> str:
    """The type of the first device that is no CPU; of the first device where all are."""
    return next((name for name in problem.cluster.devices if name != CPU), problem.cluster.devices[0])


def figures(problem: Problem, micro_batch: int, limit_bytes: int) -> Figures:
    """Figures of one micro-batch; operators that cost nothing and hang on one other are merged with it.

    Where memory may bind, only those without bytes are merged.

    The bytes of an operator: state of its weights and what it saves of one micro-batch.
    """
    graph = problem.profile.graph
    name = accelerator_type(problem)
    latency = _latency(problem, name, micro_batch)
    cpu = _latency(problem, CPU, micro_batch) if CPU in problem.cluster.devices else latency * 0 + np.inf
    operators = problem.profile.on(name).operators
    size = np.array(
        [
            weight_state_bytes(problem.regime, sum(graph.parameter_bytes[p] for p in operator.parameters), 1)
            + costs.saved_bytes_per_sample * micro_batch
            for operator, costs in zip(graph.operators, operators, strict=True)
        ]
    )
    foreign = np.array([float(operator.attributes.get("cpu_only", 0)) for operator in graph.operators])
    outputs = _outputs(problem, micro_batch)
    light = (size == 0) | (size.sum() <= limit_bytes)
    light &= (latency < 1e-9) & ((cpu < 1e-9) | ~np.isfinite(cpu))
    home = _merged(graph.successors, light, outputs)
    roots = sorted(set(home))
    node_of = {root: node for node, root in enumerate(roots)}
    members = tuple(tuple(o for o, root in enumerate(home) if root == each) for each in roots)
    after: list[set[int]] = [set() for _ in roots]
    for operator, later in enumerate(graph.successors):
        after[node_of[home[operator]]].update(node_of[home[each]] for each in later)
    rank = [(graph.operators[root].attributes.get("colour", root), root) for root in roots]
    merged: dict[tuple[int, ...], float] = {}
    for ends, seconds in outputs.items():
        nodes = tuple(sorted({node_of[home[end]] for end in ends}))
        if len(nodes) > 1 and seconds > 0:
            merged[nodes] = merged.get(nodes, 0.0) + seconds

    def total(values: FloatArray) -> FloatArray:
        return np.array([values[list(each)].sum() for each in members])

    return Figures(
        members=members,
        latency=total(latency),
        cpu_latency=total(cpu),
        size=total(size),
        foreign=total(foreign),
        successors=[sorted(later - {node}, key=rank.__getitem__) for node, later in enumerate(after)],
        outputs=merged,
    )


def _latency(problem: Problem, name: str, micro_batch: int) -> FloatArray:
    costs = problem.profile.on(name)
    if len(costs.micro_batches) == 1:
        scale = micro_batch / costs.micro_batches[0]
        return np.array([(each.forward_s[0] + each.backward_s[0]) * scale for each in costs.operators])
    forward, backward = OperatorTimes(costs).at(micro_batch)
    return (forward + backward) / 1e9


def _outputs(problem: Problem, micro_batch: int) -> dict[tuple[int, ...], float]:
    """Operators that make or read an output, with the seconds to send it (and its gradient) once."""
    graph = problem.profile.graph
    bandwidth = problem.cluster.flat(problem.cluster.size).bandwidth_bytes_s
    ends: dict[str, set[int]] = {}
    seconds: dict[str, float] = {}
    for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
        if producer < 0:
            continue
        name = tensor.name.split(SHARED)[0]
        ends.setdefault(name, set()).update((producer, *readers))
        moved = (tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample) * micro_batch
        seconds[name] = max(seconds.get(name, 0.0), (moved + tensor.fixed_bytes) / bandwidth)
    summed: dict[tuple[int, ...], float] = {}
    for name, found in ends.items():
        key = tuple(sorted(found))
        summed[key] = summed.get(key, 0.0) + seconds[name]
    return summed


def _merged(
    successors: tuple[tuple[int, ...], ...],
    free: NDArray[np.bool_],
    outputs: dict[tuple[int, ...], float],
) -> list[int]:
    """For each operator the one it is merged into: itself, or where it is `free` and next to one
    other only, which takes part in all its outputs, that one.

    Source: the released program's trivial node optimisations; fewer downsets, and no load grows.
    """
    home = list(range(len(successors)))
    near: list[set[int]] = [set() for _ in successors]
    for operator, later in enumerate(successors):
        for each in later:
            near[operator].add(each)
            near[each].add(operator)
    sent: list[list[tuple[int, ...]]] = [[] for _ in successors]
    for ends in outputs:
        for end in ends:
            sent[end].append(ends)
    again = True
    while again:
        again = False
        for operator in range(len(home)):
            if not free[operator] or len(near[operator]) != 1 or home[operator] != operator:
                continue
            (other,) = near[operator]
            if all(other in {_root(home, end) for end in ends} for ends in sent[operator]):
                home[operator] = other
                near[other].discard(operator)
                near[operator].clear()
                again = True
    return [_root(home, operator) for operator in range(len(home))]


def _root(home: list[int], operator: int) -> int:
    while home[operator] != operator:
        operator = home[operator]
    return operator
