"""A graph without some kinds of operators: what they did runs inside the operator before them."""

from collections.abc import Collection

from msgspec.structs import replace

from pipebench.domain.graph import Operator, OperatorGraph


def fold(graph: OperatorGraph, kinds: Collection[str]) -> OperatorGraph:
    """Operators of these kinds, each with one input and no parameter, left out; their readers read that input."""
    instead: dict[str, str] = {}
    kept = []
    for position in graph.topological:
        operator = graph.operators[position]
        if operator.kind in kinds:
            (read,) = operator.inputs
            (made,) = graph.outputs[position]
            instead[graph.tensors[made].name] = instead.get(read, read)
        else:
            kept.append(operator)
    return replace(
        graph,
        operators=tuple(_renamed(operator, instead) for operator in kept),
        tensors=tuple(tensor for tensor in graph.tensors if tensor.name not in instead),
    )


def _renamed(operator: Operator, instead: dict[str, str]) -> Operator:
    return replace(
        operator,
        inputs=tuple(instead.get(name, name) for name in operator.inputs),
        axes={instead.get(name, name): axes for name, axes in operator.axes.items()},
    )
