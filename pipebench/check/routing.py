"""Relay routing: stages form a chain as listed, so every tensor must go down the list."""

from pipebench.check.holders import data_edges
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def relayed_backwards(problem: Problem, plan: Plan) -> Witness | None:
    """The first pair of stages between which a relayed tensor would have to go up the list."""
    if plan.routing != "relay":
        return None
    for source, target in sorted(data_edges(problem.profile.graph, plan)):
        if source > target:
            message = f"routing is relay, but stage {source} sends to stage {target}, which is listed before it"
            return Witness(rule="shape", message=message, stage=source)
    return None
