"""PipeDream's own formulas, the paper's and the released optimizer's, and the units that they count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.formula import ENDLESS
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Units:
    """The units that a partition is made of. Arrays have the shape (units,).

    members: positions of operators.
    successors: positions of units.
    compute_s: forward and backward of one micro-batch on one device.
    activation_bytes: what a unit sends, of one micro-batch.
    parameter_bytes: a parameter that several operators use counts in each of them.
    """

    members: tuple[tuple[int, ...], ...]
    successors: tuple[tuple[int, ...], ...]
    compute_s: FloatArray
    activation_bytes: FloatArray
    parameter_bytes: FloatArray

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.members)


def operator_units(model: CostModel, micro_batch: int) -> Units:
    """One unit for each operator."""
    graph = model.graph
    forward, backward = model.times.at(micro_batch)
    sent = [
        sum(graph.tensors[tensor].forward_bytes_per_sample for tensor in made) * micro_batch
        for made in graph.outputs
    ]
    held = graph.weight_bytes
    return Units(
        members=tuple((operator,) for operator in range(len(graph.operators))),
        successors=graph.successors,
        compute_s=(forward + backward) / NS_PER_S,
        activation_bytes=np.array(sent, dtype=np.float64),
        parameter_bytes=np.array(held, dtype=np.float64),
    )


def join_branches(units: Units) -> Units:
    """Runs of units between a fork and the next fork or join become one unit, which sends what its last one sends.

    Source: the branch compression beside the released optimizer; chains outside of branches stay as they are.
    """
    before = [0] * units.count
    for after in units.successors:
        for unit in after:
            before[unit] += 1
    group = list(range(units.count))
    for unit in range(units.count):
        if len(units.successors[unit]) > 1:
            for first in units.successors[unit]:
                for member in _run_of_units(first, units.successors, before):
                    group[member] = first
    return _merge_groups(units, group)


def _run_of_units(first: int, successors: Sequence[Sequence[int]], before: Sequence[int]) -> list[int]:
    """Units from `first` on, each the only reader of the one before it; a fork ends the run and is part of it."""
    if before[first] > 1:
        return []
    run = [first]
    while len(successors[run[-1]]) == 1 and before[successors[run[-1]][0]] == 1:
        run.append(successors[run[-1]][0])
    return run


def _merge_groups(units: Units, group: Sequence[int]) -> Units:
    heads = sorted(set(group))
    place = {head: position for position, head in enumerate(heads)}
    members: list[list[int]] = [[] for _ in heads]
    for unit in range(units.count):
        members[place[group[unit]]].append(unit)
    after: list[dict[int, None]] = [{} for _ in heads]
    last = [own[-1] for own in members]
    for unit in range(units.count):
        for successor in units.successors[unit]:
            if group[successor] != group[unit]:
                after[place[group[unit]]][place[group[successor]]] = None
                last[place[group[unit]]] = unit
    return Units(
        members=tuple(tuple(op for unit in own for op in units.members[unit]) for own in members),
        successors=tuple(map(tuple, after)),
        compute_s=np.array([units.compute_s[own].sum() for own in members]),
        activation_bytes=units.activation_bytes[last],
        parameter_bytes=np.array([units.parameter_bytes[own].sum() for own in members]),
    )


@kernel
def stage_s(  # pragma: no cover - compiled
    compute: float, parameters: float, replicas: int, bandwidth: float, machines_inside: int, released: bool
) -> float:
    """Seconds a micro-batch of a stage; released: `machines_inside` of the level below divide the all-reduce."""
    if released:
        reduce = 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / machines_inside
        return (compute + reduce) / replicas
    return max(compute, 2.0 * (replicas - 1) * parameters / bandwidth) / replicas


@kernel
def slower_of_cuts(  # pragma: no cover - compiled
    stage: float, received: float, sent: float, replicas: int, bandwidth: float, released: bool
) -> float:
    """Seconds of a stage, or of what it receives where that takes longer; released: or of what it sends.

    received, sent: bytes of a micro-batch. Their gradients go the other way.
    """
    links = float(replicas) if released else 1.0
    slower = max(stage, 2.0 * received / (bandwidth * links))
    if released:
        slower = max(slower, 2.0 * sent / (bandwidth * links))
    return slower


@kernel
def fits(held: float, behind: int, replicas: int, released: bool, limit: float) -> bool:  # pragma: no cover
    """Whether `held` bytes of weights and activations fit for each live micro-batch.

    behind: machines that come after the stage. The paper counts the stage itself, the code does not.
    """
    machines = behind if released else behind + replicas
    return -(-machines // replicas) * held <= limit


def released_micro_batches(saved_bytes: IntArray, parameter_bytes: IntArray, limit_bytes: int) -> IntArray:
    """How many copies of weights and saved activations, nothing else, fit within the limit."""
    each = saved_bytes + parameter_bytes
    return np.where(each > 0, limit_bytes // np.maximum(each, 1), ENDLESS)
