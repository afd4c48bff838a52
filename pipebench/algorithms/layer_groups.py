"""Layers of a graph: the runs of operators between which frameworks cut."""

from pipebench.costs.transformer import EMBEDDING, HEAD, LAYER, NORM, POSITIONS
from pipebench.domain.graph import OperatorGraph

Groups = tuple[tuple[int, ...], ...]


def layer_groups(graph: OperatorGraph) -> tuple[tuple[int, ...], ...]:
    """Operators (positions) of each layer, in an order that cuts between layers keep valid.

    Layers are those that the operators name; one without a layer joins the latest layer it reads from, or
    the earliest that reads from it. Where no operator names a layer, or data flow back to an earlier one,
    every operator is a layer of its own, in topological order.
    """
    single = tuple((operator,) for operator in graph.topological)
    layer = [operator.layer for operator in graph.operators]
    if all(index is None for index in layer):
        return single
    for operator in graph.topological:
        if layer[operator] is None:
            layer[operator] = max(
                (index for p in graph.predecessors[operator] if (index := layer[p]) is not None), default=None
            )
    for operator in reversed(graph.topological):
        if layer[operator] is None:
            layer[operator] = min(
                (index for s in graph.successors[operator] if (index := layer[s]) is not None), default=None
            )
    named: dict[int, list[int]] = {}
    for operator in graph.topological:
        index = layer[operator]
        if index is None:
            return single
        if any(
            (after := layer[successor]) is not None and after < index for successor in graph.successors[operator]
        ):
            return single
        named.setdefault(index, []).append(operator)
    return tuple(tuple(named[index]) for index in sorted(named))


def cut_items(graph: OperatorGraph) -> Groups:
    """What frameworks cut between: of a language model `language_items`, of others their layers."""
    return language_items(graph) or layer_groups(graph)


def language_items(graph: OperatorGraph) -> Groups | None:
    """A language model's embedding (with positions), each of its layers, norm with head; None for others."""
    kinds = [operator.kind for operator in graph.operators]
    order = graph.topological
    heads = tuple(op for op in order if kinds[op] in (NORM, HEAD))
    tables = tuple(op for op in order if kinds[op] in (EMBEDDING, POSITIONS))
    layers = [op for op in order if kinds[op] == LAYER]
    if not (layers and tables and heads) or len(heads) + len(tables) + len(layers) != len(kinds):
        return None
    return (tables, *((layer,) for layer in layers), heads)
