"""What the DP knows of a problem: latencies on both kinds of device, sizes and outputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem
from pipebench_tarnawski.released_costs import latency_s, output_s

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """Nodes (sets of operators) with their latencies in s; outputs as node sets with seconds to send.

    foreign: 1 for nodes that no accelerator runs.
    successors: of each node, by colour class where the profile has them (the order in which the released program
        follows them).
    """

    members: tuple[tuple[int, ...], ...]
    latency: FloatArray
    cpu_latency: FloatArray
    foreign: FloatArray
    successors: list[list[int]]
    outputs: dict[tuple[int, ...], float]


def accelerator_type(problem: Problem) -> str:
    """The type of the first device that is no CPU; of the first device where all are."""
    return next((name for name in problem.cluster.devices if name != CPU), problem.cluster.devices[0])


def node_costs(problem: Problem, micro_batch: int, weightless: NDArray[np.bool_]) -> NodeCosts:
    """Figures of one micro-batch; operators that cost nothing and hang on one other are merged with it.

    weightless: operators that may be merged, those whose place never matters to memory.
    """
    graph = problem.profile.graph
    name = accelerator_type(problem)
    latency = latency_s(problem, name, micro_batch)
    cpu = latency_s(problem, CPU, micro_batch) if CPU in problem.cluster.devices else latency * 0 + np.inf
    foreign = np.array([float(operator.attributes.get("cpu_only", 0)) for operator in graph.operators])
    outputs = output_s(problem, micro_batch)
    light = weightless & (latency < 1e-9) & ((cpu < 1e-9) | ~np.isfinite(cpu))
    home = _merge_targets(graph.successors, light, outputs)
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

    def total(values: FloatArray | IntArray) -> FloatArray:
        return np.array([values[list(each)].sum() for each in members])

    return NodeCosts(
        members=members,
        latency=total(latency),
        cpu_latency=total(cpu),
        foreign=total(foreign),
        successors=[sorted(later - {node}, key=rank.__getitem__) for node, later in enumerate(after)],
        outputs=merged,
    )


def _merge_targets(
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
