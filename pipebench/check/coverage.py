"""Coverage: every operator in exactly one stage; constant ones in at least one, once in each."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def uncovered(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator that is unknown, held twice, or held by no stage; or a stage that holds none."""
    graph = problem.profile.graph
    home: dict[str, int] = {}
    for position, stage in enumerate(plan.stages):
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
