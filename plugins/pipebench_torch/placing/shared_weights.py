"""Weights that operators of several stages use: an embedding and a head that share a table."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan


def refuse_split_weights(graph: OperatorGraph, plan: Plan) -> None:
    """Raises UnsupportedProblem where a weight is used in two stages: their gradients would have to be added."""
    home: dict[str, int] = {}
    for position, stage in enumerate(plan.stages):
        for operator in stage.operators:
            for name in graph.operators[graph.index[operator]].parameters:
                if home.setdefault(name, position) != position:
                    raise UnsupportedProblem(
                        f"parameter {name!r} is used in stages {home[name]} and {position}: torch does not add "
                        "gradients of a weight over stages",
                        "keep the operators that use it in one stage",
                    )
