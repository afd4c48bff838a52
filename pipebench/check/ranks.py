"""Whether the ranks of a plan's stages can share out what they hold: experts, and copies of weights or state."""

from math import gcd

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def wrong_experts(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage with experts whose ranks cannot share them out.

    Its ranks, replicas times tensor-parallel ones, make whole groups of `Regime.expert_parallel`; those of a group
    exchange the tokens of one micro-batch, so replicas do not take micro-batches in turn. Each rank has tokens of
    its own, so an operator with experts does not run whole on several tensor-parallel ranks.
    """
    ranks = problem.regime.expert_ranks
    for position, stage in enumerate(plan.stages) if ranks > 1 else ():
        held = with_experts(problem, stage)
        if not held:
            continue
        context = problem.regime.context_ranks
        there = stage.data_parallel * stage.tensor_parallel * context
        message = ""
        if not problem.regime.shares_experts_over(stage.data_parallel, stage.tensor_parallel):
            message = (
                f"stage {position} has experts, which {ranks} ranks share out, and data_parallel "
                f"{stage.data_parallel} x tensor_parallel {stage.tensor_parallel}"
                f"{f' x context_parallel {context}' if context > 1 else ''} = {there} ranks: it must be a "
                f"multiple of {ranks}; take other --dp, --tp or --pp, or --ep {gcd(there, ranks)}"
            )
        elif stage.turns > 1:
            message = (
                f"stage {position} has experts, whose {ranks} ranks exchange tokens of one micro-batch, and its "
                "replicas take micro-batches in turn"
            )
        elif stage.tensor_parallel > 1 and (whole := _whole(stage, held)):
            message = (
                f"operator {whole!r} has experts, which {ranks} ranks share out, and runs whole on each of the "
                f"{stage.tensor_parallel} tensor-parallel ranks of stage {position}: choose a way that splits it"
            )
        if message:
            return Witness(rule="shape", message=message, stage=position, operator=held[0])
    return None


def uneven_groups(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage whose replicas, those of all copies, make no whole groups of `Regime.sharding_ranks`."""
    for position, stage in enumerate(plan.stages):
        replicas = stage.data_parallel * plan.all_pipelines
        if not problem.regime.shards_evenly(replicas):
            context = problem.regime.context_ranks
            ranks = problem.regime.shards(replicas * context)
            message = (
                f"stage {position} has {replicas} replicas"
                f"{f' x context_parallel {context}' if context > 1 else ''}, which is no multiple of the {ranks} "
                "ranks that share out a copy (--sharding-ranks)"
            )
            return Witness(rule="shape", message=message, stage=position)
    return None


def with_experts(problem: Problem, stage: Stage) -> list[str]:
    """Operators of a stage with experts that ranks share out."""
    graph = problem.profile.graph
    return [name for name in stage.operators if graph.expert_weight_bytes[graph.index[name]]]


def _whole(stage: Stage, names: list[str]) -> str:
    """The first of these operators that runs plainly, '' where none does."""
    chosen = dict(zip(stage.operators, stage.choice, strict=False))
    return next((name for name in names if not chosen.get(name)), "")
