"""The weights of a stage in parts: what as many ranks hold alike is reduced and shared out together.

Without expert parallelism a stage has one part, which its replicas hold alike. With it (Megatron-LM, torchtitan,
DeepSpeed-MoE) E of the ranks of a stage share out the experts of each layer, tensor-parallel ranks among them, so
that of r replicas of t ranks r t / E hold the same experts. All other weights are those of its r replicas. Where C
ranks share out the sequences of a replica, each of them is one of these ranks: C times as many hold the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from pipebench.costs.formula import Amount, Formula
from pipebench.costs.rings import Rings
from pipebench.domain.problem import Regime


@dataclass(frozen=True, slots=True)
class WeightPart(Generic[Amount]):
    """Weights on one device. ranks: that hold the same. rings: collectives over them that run at once."""

    bytes: Amount
    ranks: int
    rings: int


def expert_holders(regime: Regime, replicas: int, tensor_parallel: int) -> int:
    """Ranks that hold the same experts, of so many replicas in all pipelines.

    The check refuses a stage with experts whose ranks are no multiple of those that share them; there it is the
    fewest that there can be.
    """
    return max(1, replicas * tensor_parallel * regime.context_ranks // regime.expert_ranks)


def weight_parts(
    regime: Regime, parameter_bytes: Amount, expert_bytes: Amount, replicas: int, tensor_parallel: int
) -> tuple[WeightPart[Amount], ...]:
    """The parts of a stage. expert_bytes: of parameter_bytes those of experts that ranks share out."""
    everywhere, ranks = replicas * regime.context_ranks, regime.expert_ranks
    if ranks == 1:
        return (WeightPart(parameter_bytes, everywhere, tensor_parallel),)
    return (
        WeightPart(parameter_bytes - expert_bytes, everywhere, tensor_parallel),
        WeightPart(expert_bytes, expert_holders(regime, replicas, tensor_parallel), ranks),
    )


def state_bytes(formula: Formula, parts: Sequence[WeightPart[Amount]]) -> Amount:
    """`Formula.state_bytes` of all parts; what every stage has counts once."""
    first, *others = parts
    of = formula.of_ranks.state_bytes
    total = of(first.bytes, first.ranks)
    for part in others:
        total = total + of(part.bytes, part.ranks) - of(0, part.ranks)
    return total


def reduce_ns(formula: Formula, parts: Sequence[WeightPart[Amount]], links: Rings) -> Amount:
    """`Formula.reduce_ns` of all parts, one after the other."""
    total = 0 * parts[0].bytes
    for part in parts:
        if part.ranks > 1:
            total = total + formula.of_ranks.reduce_ns(links(part.rings), part.bytes, part.ranks)
    return total


def exchange_ns(formula: Formula, parts: Sequence[WeightPart[Amount]], links: Rings) -> tuple[Amount, Amount]:
    """`Formula.exchange_ns` of all parts, one after the other."""
    there, back = 0 * parts[0].bytes, 0 * parts[0].bytes
    for part in parts:
        if part.ranks > 1:
            each = formula.of_ranks.exchange_ns(links(part.rings), part.bytes, part.ranks)
            there, back = there + each[0], back + each[1]
    return there, back


def update_ns(formula: Formula, reduced_ns: Amount, parts: Sequence[WeightPart[Amount]]) -> Amount:
    """`Formula.update_ns` of all parts. reduced_ns: their `reduce_ns`."""
    first, *others = parts
    of = formula.of_ranks.update_ns
    total = of(reduced_ns, first.bytes, first.ranks)
    for part in others:
        total = total + of(0 * part.bytes, part.bytes, part.ranks) - of(0)
    return total


def unit_bytes(parts: Sequence[WeightPart[Amount]]) -> Amount:
    """Of one operator: what is gathered while it runs, where ranks that hold the same share out weights."""
    total = 0 * parts[0].bytes
    for part in parts:
        if part.ranks > 1:
            total = total + part.bytes
    return total
