"""The weights of a stage in parts: what as many ranks hold alike is reduced and shared out together.

Without expert parallelism a stage has one part, which its replicas hold alike. With it (Megatron-LM, torchtitan,
DeepSpeed-MoE) E of the ranks of a stage share out the experts of each layer, tensor-parallel ranks among them, so
that of r replicas of t ranks r t / E hold the same experts. All other weights are those of its r replicas.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from pipebench.costs.formula import Amount, Formula
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Regime

Levels = Callable[[int], LinkLevel]
"""Number of rings that run at once to the link level that each of them has."""


@dataclass(frozen=True, slots=True)
class WeightPart(Generic[Amount]):
    """Weights on one device. replicas: ranks that hold the same. rings: collectives over them that run at once."""

    bytes: Amount
    replicas: int
    rings: int


def expert_replicas(regime: Regime, replicas: int, tensor_parallel: int) -> int:
    """Ranks that hold the same experts, of so many replicas in all pipelines.

    The check refuses a stage with experts whose ranks are no multiple of those that share them; there it is the
    fewest that there can be.
    """
    return max(1, replicas * tensor_parallel // regime.expert_ranks)


def weight_parts(
    regime: Regime, parameter_bytes: Amount, expert_bytes: Amount, replicas: int, tensor_parallel: int
) -> tuple[WeightPart[Amount], ...]:
    """The parts of a stage. expert_bytes: of parameter_bytes those of experts that ranks share out."""
    ranks = regime.expert_ranks
    if ranks == 1:
        return (WeightPart(parameter_bytes, replicas, tensor_parallel),)
    alike = expert_replicas(regime, replicas, tensor_parallel)
    return (
        WeightPart(parameter_bytes - expert_bytes, replicas, tensor_parallel),
        WeightPart(expert_bytes, alike, ranks),
    )


def state_bytes(formula: Formula, parts: Sequence[WeightPart[Amount]]) -> Amount:
    """`Formula.state_bytes` of all parts; what every stage has counts once."""
    first, *others = parts
    total = formula.state_bytes(first.bytes, first.replicas)
    for part in others:
        total = total + formula.state_bytes(part.bytes, part.replicas) - formula.state_bytes(0, part.replicas)
    return total


def reduce_ns(formula: Formula, parts: Sequence[WeightPart[Amount]], level: Levels) -> Amount:
    """`Formula.reduce_ns` of all parts, one after the other."""
    total = 0 * parts[0].bytes
    for part in parts:
        if formula.holders(part.replicas) > 1:
            total = total + formula.reduce_ns(level(part.rings), part.bytes, part.replicas)
    return total


def exchange_ns(formula: Formula, parts: Sequence[WeightPart[Amount]], level: Levels) -> tuple[Amount, Amount]:
    """`Formula.exchange_ns` of all parts, one after the other."""
    there, back = 0 * parts[0].bytes, 0 * parts[0].bytes
    for part in parts:
        if formula.holders(part.replicas) > 1:
            each = formula.exchange_ns(level(part.rings), part.bytes, part.replicas)
            there, back = there + each[0], back + each[1]
    return there, back


def update_ns(formula: Formula, reduced_ns: Amount, parts: Sequence[WeightPart[Amount]]) -> Amount:
    """`Formula.update_ns` of all parts. reduced_ns: their `reduce_ns`."""
    first, *others = parts
    total = formula.update_ns(reduced_ns, first.bytes, first.replicas)
    for part in others:
        alone = formula.update_ns(0 * part.bytes, part.bytes, part.replicas)
        total = total + alone - formula.update_ns(0)
    return total


def unit_bytes(formula: Formula, parts: Sequence[WeightPart[Amount]]) -> Amount:
    """Of one operator: what is gathered while it runs, where ranks that hold the same share out weights."""
    total = 0 * parts[0].bytes
    for part in parts:
        if formula.holders(part.replicas) > 1:
            total = total + part.bytes
    return total
