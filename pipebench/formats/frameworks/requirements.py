"""What a framework asks of a problem, whatever its plan is: asked before a search, and of each plan again."""

from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import NarrowPrecision
from pipebench.domain.recomputation import RecomputePin


class CannotExpress(PipebenchError):
    """A framework has no words for a plan; the message says which property of the plan it is.

    hint: the options with which a plan has words, None where none alone decides that.
    """


def narrow_products(problem: Problem) -> NarrowPrecision | None:
    """The precision of the layers' products, None where it is that of the weights."""
    return problem.profile.provenance.products or None


def require_plain_products(problem: Problem) -> None:
    """Raises CannotExpress where products of layers run in fewer bits."""
    narrow = narrow_products(problem)
    if narrow is not None:
        raise CannotExpress(f"products of layers run in {narrow}", "plan without products= of the profiler")


def require_whole_experts(problem: Problem, why: str) -> None:
    """Raises CannotExpress, with what stands against it, where ranks share out experts."""
    ranks = problem.regime.expert_ranks
    if ranks > 1:
        raise CannotExpress(f"{ranks} ranks share out the experts of each layer; {why}", "plan with --ep 1")


def require_whole_sequences(problem: Problem, why: str) -> None:
    """Raises CannotExpress, with what stands against it, where ranks share out sequences."""
    ranks = problem.regime.context_ranks
    if ranks > 1:
        raise CannotExpress(f"{ranks} ranks share out each sequence; {why}", "plan with --cp 1")


def require_whole_weights(regime: Regime, holders: int, why: str) -> None:
    """Raises CannotExpress, with what stands against it, where holders of the same weights share them out."""
    if holders > 1 and regime.shards_weights:
        raise CannotExpress(
            f"replicas share out weights and gradients (ZeRO-3); {why}", "plan with --optimizer-sharding zero1"
        )


def require_one_group(regime: Regime, holders: int, why: str) -> None:
    """Raises CannotExpress, with what stands against it, where groups of these holders share out a copy each."""
    shards = regime.shards(holders)
    if shards < holders:
        raise CannotExpress(
            f"{holders // shards} groups of {shards} ranks share out a copy each; {why}",
            "plan without --sharding-ranks",
        )


def require_one_stage(virtual: int, who: str) -> None:
    """Raises CannotExpress where ranks run several stages. virtual: stages a rank."""
    if virtual > 1:
        raise CannotExpress(f"{virtual} stages a rank: {who} runs one", "plan with --vpp 1")


def require_other_recomputation(
    recompute: RecomputePin | None, refused: RecomputePin, why: str, hint: str
) -> None:
    """Raises CannotExpress, with what stands against it, where a way to recompute is the refused one."""
    if recompute == refused:
        raise CannotExpress(why, hint)


def least_holders(problem: Problem) -> int:
    """Ranks that hold the same weights in every plan of the problem."""
    return (problem.pins.data_parallel or 1) * problem.regime.context_ranks
