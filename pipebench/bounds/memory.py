"""The least memory that any plan needs on its fullest device."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from pipebench.bounds.operators import (
    Ways,
    cuts,
    devices_of_a_plan,
    freely_split,
    least_parts,
    most_replicas,
    ways,
)
from pipebench.costs.formula import Amount, Formula, Holdings
from pipebench.costs.quantise import FloatArray, IntArray, whole_bytes
from pipebench.costs.weights import state_bytes
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import ELEMENT_BYTES

ELEMENT = max(ELEMENT_BYTES.values())
MemoryKind = Literal["weights", "sample", "operator"]


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """In every plan some device needs at least `value` bytes.

    kind: the argument that gives the largest bound.
    parts: the bound of each argument, in bytes.
    """

    value: int
    kind: MemoryKind
    parts: dict[MemoryKind, int]


def memory_bound(problem: Problem, split: bool = False) -> MemoryBound:
    """The largest of the bounds `weights`, `sample` and `operator`, over all plans that honour the pins.

    split: also over plans that cut operators among devices; the bound `operator` is then left out.
    The bound holds for the peak of the fullest device of any valid plan under any schedule. Transfer buffers do
    not count, because a plan of one stage has none.

    Raises InfeasibleProblem when the pins leave no plan.
    """
    problem = freely_split(problem) if split else problem
    weights, sample = spread_bytes(problem)
    parts: dict[MemoryKind, int] = {"weights": weights, "sample": sample}
    if not split:
        parts["operator"] = operator_bytes(problem)
    kind = max(parts, key=lambda name: parts[name])
    return MemoryBound(parts[kind], kind, parts)


def operator_bytes(problem: Problem) -> int:
    """One operator alone with one micro-batch.

    Proof. While a stage runs, each of its devices holds the state of the weights of every operator in it,
    what one micro-batch saves (in one piece while recomputing), and the workspace of its largest operator;
    each is at least this operator's own in a stage that it has for itself: memory grows with what is in a
    stage. Saved bytes and sharded optimizer state are smallest with the most replicas and the fewest samples
    that a cut allows; both minima are taken on their own.
    """
    operators = len(problem.profile.graph.operators)
    samples = min(cut.samples for cut in cuts(problem))
    least = np.full(operators, np.iinfo(np.int64).max)
    formula = Formula(problem.regime, problem.mini_batch)
    for rows in ways(problem):
        none = np.zeros_like(rows.workspace_bytes)
        content = Holdings(
            state_bytes=state_bytes(formula, least_parts(problem, rows.parameter_bytes, rows.expert_bytes)),
            saved_bytes=whole_bytes(rows.saved_bytes * samples),
            input_bytes=none,
            buffer_bytes=none,
            workspace_bytes=rows.workspace_bytes,
            fixed_bytes=rows.fixed_bytes,
            transient_bytes=none,
            unit_bytes=none,
        )
        kept, again = _peaks(formula, content)
        least = np.minimum(least, rows.least(np.minimum(kept, again), operators))
    return int(least.max())


def _peaks(formula: Formula, content: Holdings[Amount]) -> tuple[Amount, Amount]:
    """Peak bytes of a stage with one live micro-batch: without recomputation, and with it."""
    return formula.memory(content, "none").peak(1), formula.memory(content, "stage").peak(1)


def spread_bytes(problem: Problem) -> tuple[int, int]:
    """The state of all weights, and with it what one sample saves, spread evenly over the devices.

    Proof. weights: a device holds the state of the weights of its stages' operators, so the sum over all
    devices is at least the sum over operators, each by its cheapest alternative on the devices of one
    replica. A parameter that several operators use counts for the first of them only: if that one runs
    plainly its stage holds the parameter once whoever shares it, else it holds what its alternative says. So
    an alternative of an operator counts nothing where an earlier one uses just the same parameters.
    Pinned replicas each hold a copy, of what they share out (zero1, zero3) at least one among them. Some device
    holds at least the mean.

    sample: take a last operator z and a micro-batch of its stage. When its forward ends, the forwards of all
    stages with an ancestor of z that cover its samples have ended, and none of their backwards has begun (in
    a chain of backwards that starts with z's own). So at that instant every ancestor's stage has a live
    micro-batch and holds on each device at least what one sample saves (recomputation holds one full set
    while any is live). Pinned: see `samples_at_once`.

    Besides, each device that is used holds what every stage has, and one at least what every stage has of a live
    micro-batch. So the mean over U <= D used devices is at least the first and the D-th part of all the rest.

    The sums are floats; a relative 10^-11 is taken off before rounding up, above all rounding of the costs.
    """
    graph, pins = problem.profile.graph, problem.pins
    operators = len(graph.operators)
    samples = samples_at_once(problem)
    slope = _live_of_a_byte(problem.regime)
    state = np.full(operators, math.inf)
    both = np.full(operators, math.inf)
    for rows in ways(problem):
        counted, experts = parameter_bytes_counted(graph, rows)
        held = state_of_ways(problem.regime, counted, experts, rows, pins.data_parallel or 1)
        live = samples * rows.devices * rows.saved_bytes * slope
        for kept, bytes_each in ((state, held), (both, held + live)):
            np.minimum.at(kept, rows.operator, bytes_each)
    every = Formula(problem.regime, problem.mini_batch).every_stage(most_replicas(problem))
    saved = both - state
    most = max(float(saved[ancestors].sum()) for ancestors in ancestors_of_last(graph))
    devices = devices_of_a_plan(problem)
    weights, sample = float(state.sum()), most + every.per_micro_batch
    return every.held + _share(weights, devices), every.held + _share(weights + sample, devices)


def samples_at_once(problem: Problem) -> int:
    """Samples that the replicas of a stage save at least while one of its micro-batches is live.

    Proof. A micro-batch of b samples is saved by the replicas that share it, or by the one whose turn it is. Where
    the samples of one replica are pinned, b is at least so many.
    """
    return problem.pins.micro_batch or problem.pins.micro_batch_size or 1


def _share(total: float, devices: int) -> int:
    mean = total / devices
    return math.ceil(mean - 1e-11 * (mean + 1))


def state_of_ways(regime: Regime, counted: IntArray, experts: IntArray, rows: Ways, replicas: int) -> FloatArray:
    """Bytes of weight state and fixed bytes of each way, over all devices of `replicas` replicas.

    counted, experts: of each way (`parameter_bytes_counted`). A stage with experts that E ranks share out has at
    least E ranks, each with a part of them; what sharding shares out besides is there once for each part, or for
    each group of ranks that share out a copy. Of the ranks of a device that share out sequences one is counted.
    """
    each, optimizer = _parts_of_a_byte(regime)
    total = np.zeros(len(counted), np.float64)
    if regime.expert_ranks > 1:
        ranks = np.maximum(regime.expert_ranks / regime.context_ranks, replicas * rows.devices)
        total += each * experts * (regime.expert_ranks if regime.shards_weights else ranks)
        total += optimizer * experts * (regime.expert_ranks if regime.shards_optimizer else ranks)
        counted = counted - experts
    holders = replicas * regime.context_ranks
    copies = holders / regime.shards(holders)
    optimizer *= copies if regime.shards_optimizer else replicas
    each *= copies if regime.shards_weights else replicas
    total = total + rows.devices * (each * counted + replicas * rows.fixed_bytes + optimizer * counted)
    return np.asarray(total, np.float64)


def state_on_a_device(
    regime: Regime, counted: IntArray, experts: IntArray, rows: Ways, replicas: int, degree: int
) -> FloatArray:
    """The same on one device of a stage whose replicas have `degree` devices each, where ranks share out experts.

    As many devices as in `costs.weights.expert_holders` hold the same experts.
    """
    none = np.zeros_like(experts)
    alike = state_of_ways(regime, counted - experts, none, rows, replicas) / (rows.devices * replicas)
    each, optimizer = _parts_of_a_byte(regime)
    holders = max(1.0 / regime.context_ranks, replicas * degree / regime.expert_ranks)
    each /= holders if regime.shards_weights else 1
    optimizer /= holders if regime.shards_optimizer else 1
    return np.asarray(alike + (each + optimizer) * experts, np.float64)


def parameter_bytes_counted(graph: OperatorGraph, rows: Ways) -> tuple[IntArray, IntArray]:
    """Of each way the weights on one device that no other operator counts, see `spread_bytes`; and of them those
    of experts that ranks share out.

    Those of the operators of a stage add up to at most what the stage holds.
    """
    first_use = np.zeros((2, len(graph.operators)), dtype=np.int64)
    repeated = np.zeros(len(graph.operators), dtype=np.bool_)
    seen: set[str] = set()
    before: set[frozenset[str]] = set()
    for position, operator in enumerate(graph.operators):
        used = frozenset(operator.parameters)
        repeated[position] = used in before
        before |= {used} if used else set()
        fresh = set(operator.parameters) - seen
        seen |= fresh
        first_use[0, position] = sum(graph.parameter_bytes[name] for name in fresh)
        first_use[1, position] = sum(graph.expert_bytes[name] for name in fresh)
    counted, experts = (
        np.where(rows.plain, own[rows.operator], np.where(repeated[rows.operator], 0, held))
        for own, held in zip(first_use, (rows.parameter_bytes, rows.expert_bytes), strict=True)
    )
    return counted, experts


def _parts_of_a_byte(regime: Regime) -> tuple[float, float]:
    """State for each byte of weights, without the optimizer and of the optimizer."""
    # From the bytes of ELEMENT bytes of weights: a whole element in any precision.
    # On one rank of a replica, of which `context_ranks` share out what is sharded; not rounded up.
    alone, ranks = replace(regime, context_parallel=UNSET), regime.context_ranks
    each = _state_of_a_byte(replace(alone, optimizer="none"))
    optimizer = _state_of_a_byte(alone) - each
    return each / (ranks if regime.shards_weights else 1), optimizer / (ranks if regime.shards_optimizer else 1)


def _state_of_a_byte(regime: Regime) -> float:
    """Bytes of state for each byte of a stage's weights, besides the state that every stage has."""
    formula = Formula(regime, 1)
    return (formula.state_bytes(ELEMENT, 1) - formula.state_bytes(0, 1)) / ELEMENT


def _live_of_a_byte(regime: Regime) -> float:
    """Lower bound on the live bytes for each saved byte of a micro-batch, besides those that every stage has."""
    formula = Formula(regime, 1)
    saved, nothing = (_peaks(formula, Holdings(0, saved, 0, 0, 0, 0, 0, 0)) for saved in (ELEMENT, 0))
    return min(some - none for some, none in zip(saved, nothing, strict=True)) / ELEMENT


def ancestors_of_last(graph: OperatorGraph) -> list[list[int]]:
    """For each operator without successors, itself and all operators before it."""
    return [sorted({last, *ancestors(graph, last)}) for last, after in enumerate(graph.successors) if not after]


def ancestors(graph: OperatorGraph, operator: int) -> set[int]:
    """All operators before this one."""
    seen: set[int] = set()
    todo = [operator]
    while todo:
        new = set(graph.predecessors[todo.pop()]) - seen
        seen |= new
        todo += new
    return seen
