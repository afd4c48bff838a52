"""Layers of a graph, and cuts into equal numbers of them."""

from pipebench.domain.graph import OperatorGraph


def equal_cuts(items: int, parts: int) -> tuple[int, ...]:
    """parts + 1 bounds 0 … items; parts differ in size by at most one. Needs 1 <= parts <= items."""
    return tuple(part * items // parts for part in range(parts + 1))


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
