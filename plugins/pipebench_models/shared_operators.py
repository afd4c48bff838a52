"""Operators that image and token models share."""

from pipebench_models.graph_builder import Activation, GraphBuilder


def linear(graph: GraphBuilder, name: str, x: Activation, features: int) -> Activation:
    """y = x W + b over the last axis; x is (features,) or (sequence, features)."""
    rows = dict(zip(("sequence",), x.shape[:-1], strict=False))
    return graph.operator(
        name,
        "linear",
        {**rows, "in_features": x.shape[-1], "out_features": features},
        {x: (*rows, "in_features")},
        (*rows, "out_features"),
        parameters={"weight": ("out_features", "in_features"), "bias": ("out_features",)},
    )


def add(
    graph: GraphBuilder, name: str, a: Activation, b: Activation, axes: tuple[str, ...], path: str
) -> Activation:
    """The sum of a residual connection; both have the same shape, whose axes are named `axes`."""
    return graph.operator(name, "add", dict(zip(axes, a.shape, strict=True)), {a: axes, b: axes}, axes, path=path)
