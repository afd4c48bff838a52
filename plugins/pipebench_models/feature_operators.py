"""Operators on plain features. Activations are (features,)."""

from collections.abc import Sequence

from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.shared_operators import linear


def feed_forward(graph: GraphBuilder, prefix: str, x: Activation, widths: Sequence[int]) -> Activation:
    """Linear layers of these widths, one after the other; activation functions run inside."""
    first = -1 if graph.layer is None else graph.layer
    for number, width in enumerate(widths):
        graph.layer = first + 1 + number
        x = linear(graph, f"{prefix}linear{number}", x, width)
    return x


def concat(graph: GraphBuilder, name: str, parts: Sequence[Activation]) -> Activation:
    """Features of all parts in a row; the parts may have different widths."""
    total = sum(part.shape[0] for part in parts)
    dims = {f"features{number}": part.shape[0] for number, part in enumerate(parts)}
    inputs = {part: (f"features{number}",) for number, part in enumerate(parts)}
    return graph.operator(name, "concat", {**dims, "features": total}, inputs, ("features",))
