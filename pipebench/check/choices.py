"""Choices: alternatives exist and match the stage; splits name dims that the operator has."""

from math import prod

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def wrong_choice(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator whose alternative is unknown or made for another tensor-parallel degree.

    The plain way ('') is allowed at any degree: each device then computes the operator whole.
    """
    graph = problem.profile.graph
    for position, stage in enumerate(plan.stages):
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        for name, identifier in zip(stage.operators, stage.choice, strict=False):
            degrees = {a.id: a.tensor_parallel for a in costs[graph.index[name]].alternatives}
            degree = degrees.get(identifier, stage.tensor_parallel if identifier == "" else 0)
            if degree == 0:
                message = f"operator {name!r} has no alternative {identifier!r}"
            elif degree != stage.tensor_parallel:
                message = (
                    f"alternative {identifier!r} of operator {name!r} is for tensor_parallel {degree}, "
                    f"stage {position} has {stage.tensor_parallel}"
                )
            else:
                continue
            return Witness(rule="shape", message=message, stage=position, operator=name)
    return None


def wrong_sharding(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator whose split names an unknown dim, cuts it too fine, needs more devices than a replica
    has, or stands beside an alternative.
    """
    for position, stage in enumerate(plan.stages):
        for name, split in zip(stage.operators, stage.sharding, strict=False):
            message = _split(problem, stage, name, split) or _chosen(stage, name, split)
            if message:
                return Witness(rule="shape", message=f"stage {position}: {message}", stage=position, operator=name)
    return None


def _split(problem: Problem, stage: Stage, name: str, split: dict[str, int]) -> str:
    graph = problem.profile.graph
    sizes = {"batch": -(-stage.micro_batch // stage.data_parallel)} | graph.operators[graph.index[name]].dims
    for dim, parts in split.items():
        if dim not in sizes:
            return f"operator {name!r} has no dim {dim!r} to split"
        if not 1 <= parts <= sizes[dim]:
            return f"operator {name!r}: dim {dim!r} of size {sizes[dim]} is split into {parts}"
    each = len(stage.devices) // stage.data_parallel
    if prod(split.values()) > each:
        return f"operator {name!r} is split over {prod(split.values())} of {each} devices"
    return ""


def _chosen(stage: Stage, name: str, split: dict[str, int]) -> str:
    """An alternative is made for its own way of splitting; '' where the operator has only one of the two."""
    chosen = stage.choice[stage.operators.index(name)] if stage.choice else ""
    if chosen and prod(split.values()) > 1:
        return f"operator {name!r} is split and runs by alternative {chosen!r}"
    return ""
