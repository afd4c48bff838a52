"""Operators of Transformers. Activations are (sequence, features)."""

from collections.abc import Sequence

from pipebench_models.graph_builder import Activation, GraphBuilder

TOKENS = ("sequence", "features")


def attention(graph: GraphBuilder, name: str, x: Activation, heads: int) -> Activation:
    """Multi-head self-attention with its four projections, without bias (Vaswani et al. 2017, section 3.2.2).

    One operator: `keys` are the positions attended to, `head` the width of one head.
    """
    sequence, features = x.shape
    inward = ("heads", "head", "in_features")
    return graph.operator(
        name,
        "attention",
        {
            "sequence": sequence,
            "keys": sequence,
            "heads": heads,
            "head": features // heads,
            "in_features": features,
            "out_features": features,
        },
        {x: ("sequence", "in_features")},
        ("sequence", "out_features"),
        parameters={
            "query": inward,
            "key": inward,
            "value": inward,
            "output": ("out_features", "heads", "head"),
        },
    )


def layer_norm(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Normalises each token; scale and shift are parameters."""
    dims = dict(zip(TOKENS, x.shape, strict=True))
    scale_and_shift = {"weight": ("features",), "bias": ("features",)}
    return graph.operator(name, "layer_norm", dims, {x: TOKENS}, TOKENS, parameters=scale_and_shift)


def concat_features(graph: GraphBuilder, name: str, parts: Sequence[Activation]) -> Activation:
    """Join sequences of one length feature by feature. Parts have one width, so all span the `features` axis."""
    sequence, features = parts[0].shape
    dims = {"parts": len(parts), "sequence": sequence, "features": features}
    return graph.operator(
        name,
        "concat",
        dims,
        dict.fromkeys(parts, TOKENS),
        ("sequence", "parts", "features"),
        shape=(sequence, len(parts) * features),
    )


def embedding(
    graph: GraphBuilder, name: str, ids: Activation, entries: int, width: int, *, joined: bool = False
) -> Activation:
    """Look up one entry of a table for each id; ids are (lookups,). joined: all in one row of features."""
    lookups = ids.shape[0]
    return graph.operator(
        name,
        "embedding",
        {"lookups": lookups, "entries": entries, "features": width},
        {ids: ("lookups",)},
        ("lookups", "features"),
        parameters={"weight": ("entries", "features")},
        shape=(lookups * width,) if joined else (lookups, width),
    )


def patches(graph: GraphBuilder, name: str, x: Activation, width: int, patch: int) -> Activation:
    """A convolution without bias over patches that do not overlap, as a sequence of them."""
    channels, height, _ = x.shape
    side = height // patch
    return graph.operator(
        name,
        "conv2d",
        {
            "out_channels": width,
            "height": side,
            "width": side,
            "in_channels": channels,
            "kernel_height": patch,
            "kernel_width": patch,
        },
        {x: ("in_channels", "height", "width")},
        ("height", "width", "out_channels"),
        parameters={"weight": ("out_channels", "in_channels", "kernel_height", "kernel_width")},
        attributes={"stride": patch, "padding": 0},
        shape=(side * side, width),
    )


def positions(graph: GraphBuilder, name: str, x: Activation, sequence: int) -> Activation:
    """Add a learned vector for each of `sequence` positions, after learned tokens for those that x lacks."""
    given, features = x.shape
    dims = {"sequence": sequence, "features": features}
    parameters = {"positions": TOKENS}
    if sequence > given:
        dims["added"] = sequence - given
        parameters["tokens"] = ("added", "features")
    return graph.operator(name, "positions", dims, {x: TOKENS}, TOKENS, parameters=parameters)


def take_token(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """The features of one token: a view."""
    _, features = x.shape
    return graph.operator(
        name, "flatten", {"features": features}, {x: ("features",)}, ("features",), path=name.rpartition(".")[0]
    )


def projection(graph: GraphBuilder, name: str, x: Activation, features: int) -> Activation:
    """y = x W, without bias."""
    return graph.operator(
        name,
        "linear",
        {"in_features": x.shape[0], "out_features": features},
        {x: ("in_features",)},
        ("out_features",),
        parameters={"weight": ("in_features", "out_features")},
    )


def similarity(graph: GraphBuilder, name: str, a: Activation, b: Activation) -> Activation:
    """The scaled product of two feature vectors, normalised inside; the scale is a parameter."""
    return graph.operator(
        name,
        "similarity",
        {"features": a.shape[0], "scores": 1},
        {a: ("features",), b: ("features",)},
        ("scores",),
        parameters={"scale": ("scores",)},
    )
