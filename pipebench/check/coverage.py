"""Coverage: every operator in exactly one stage of each pipeline; constant ones in at least one, once in each."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Rule, Witness

ALIKE = ("operators", "choice", "sharding", "recompute", "micro_batch", "data_parallel", "tensor_parallel")
"""Fields of a stage that are the same in all pipelines of a plan."""


def unlike_mirror(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage that differs from the one at its position in the first pipeline by more than its devices."""
    del problem
    for position in range(plan.pipeline_length, len(plan.stages)):
        first = plan.mirrors(position)[0]
        here, there = plan.stages[position], plan.stages[first]
        for name in ALIKE:
            if getattr(here, name) != getattr(there, name):
                message = (
                    f"stages {first} and {position} stand at one position of two pipelines and differ in {name}: "
                    f"{_short(getattr(there, name))} and {_short(getattr(here, name))}"
                )
                rule: Rule = "coverage" if name == "operators" else "shape"
                return Witness(rule=rule, message=message, stage=position)
    return None


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def uncovered(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator that is unknown, held twice, or held by no stage; or a stage that holds none.

    The other pipelines of a plan hold what the first one holds (`unlike_mirror`).
    """
    graph = problem.profile.graph
    home: dict[str, int] = {}
    for position, stage in enumerate(plan.stages[: plan.pipeline_length]):
        if not stage.operators:
            return Witness(rule="coverage", message=f"stage {position} holds no operator", stage=position)
        for name in stage.operators:
            if name not in graph.index:
                message = f"stage {position} holds {name!r}, which the graph does not have"
                return Witness(rule="coverage", message=message, stage=position, operator=name)
            before = home.get(name)
            cloned = before != position and graph.operators[graph.index[name]].constant
            if before is not None and not cloned:
                where = (
                    f"twice in stage {position}" if before == position else f"in stages {before} and {position}"
                )
                message = f"operator {name!r} is {where}"
                return Witness(rule="coverage", message=message, stage=position, operator=name)
            home[name] = position
    for operator in graph.operators:
        if operator.name not in home:
            message = f"operator {operator.name!r} is in no stage"
            return Witness(rule="coverage", message=message, operator=operator.name)
    return None
