"""Operators of image and token models, each one call of a graph builder."""

from collections.abc import Sequence
from math import prod

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


def feed_forward(graph: GraphBuilder, prefix: str, x: Activation, widths: Sequence[int]) -> Activation:
    """Linear layers of these widths, one after the other; activation functions run inside."""
    first = -1 if graph.layer is None else graph.layer
    for number, width in enumerate(widths):
        graph.layer = first + 1 + number
        x = linear(graph, f"{prefix}linear{number}", x, width)
    return x


def concat_feature_vectors(graph: GraphBuilder, name: str, parts: Sequence[Activation]) -> Activation:
    """Features of all parts in a row; the parts may have different widths."""
    total = sum(part.shape[0] for part in parts)
    dims = {f"features{number}": part.shape[0] for number, part in enumerate(parts)}
    inputs = {part: (f"features{number}",) for number, part in enumerate(parts)}
    return graph.operator(name, "concat", {**dims, "features": total}, inputs, ("features",))


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


IMAGE = ("channels", "height", "width")


Pair = tuple[int, int]
"""For height and for width."""


def conv2d(
    graph: GraphBuilder,
    name: str,
    x: Activation,
    channels: int,
    *,
    kernel: int | Pair,
    stride: int = 1,
    padding: int | Pair | None = None,
    bias: bool = False,
    pointwise: int = 0,
) -> Activation:
    """A convolution; padding None: such that stride 1 keeps the size.

    pointwise: functions applied to each element of the result inside the operator (relu).
    """
    rows, columns = _pair(kernel)
    around = (rows // 2, columns // 2) if padding is None else _pair(padding)
    in_channels, height, width = x.shape
    parameters = {"weight": ("out_channels", "in_channels", "kernel_height", "kernel_width")}
    return graph.operator(
        name,
        "conv2d",
        {
            "out_channels": channels,
            "height": _windows(height, rows, stride, around[0]),
            "width": _windows(width, columns, stride, around[1]),
            "in_channels": in_channels,
            "kernel_height": rows,
            "kernel_width": columns,
        },
        {x: ("in_channels", "height", "width")},
        ("out_channels", "height", "width"),
        parameters=parameters | {"bias": ("out_channels",)} if bias else parameters,
        attributes=_attributes(stride, around) | ({"pointwise": pointwise} if pointwise else {}),
    )


def batch_norm(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Normalises each channel over the samples; scale and shift are parameters."""
    dims = dict(zip(IMAGE, x.shape, strict=True))
    scale_and_shift = {"weight": ("channels",), "bias": ("channels",)}
    return graph.operator(name, "batch_norm", dims, {x: IMAGE}, IMAGE, parameters=scale_and_shift)


def relu(graph: GraphBuilder, name: str, x: Activation, path: str | None = None) -> Activation:
    """max(x, 0), in place, of an image or of (features,)."""
    axes = IMAGE if len(x.shape) == len(IMAGE) else ("features",)
    return graph.operator(name, "relu", dict(zip(axes, x.shape, strict=True)), {x: axes}, axes, path=path)


def dropout(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Zeroes features at random; x is (features,)."""
    dims = {"features": x.shape[0]}
    return graph.operator(name, "dropout", dims, {x: ("features",)}, ("features",))


def concat_channels(graph: GraphBuilder, name: str, parts: Sequence[Activation]) -> Activation:
    """Join images of one size channel by channel; each part is said to span the `channels` that it is part of."""
    _, height, width = parts[0].shape
    dims = {"channels": sum(part.shape[0] for part in parts), "height": height, "width": width}
    path = name.rpartition(".")[0]
    return graph.operator(name, "concat", dims, dict.fromkeys(parts, IMAGE), IMAGE, path=path)


def max_pool(
    graph: GraphBuilder, name: str, x: Activation, *, kernel: int, stride: int, padding: int = 0
) -> Activation:
    """The largest value of each window."""
    return _pool(graph, name, "max_pool", x, kernel, stride, padding)


def average_pool(
    graph: GraphBuilder, name: str, x: Activation, *, kernel: int, stride: int, padding: int = 0
) -> Activation:
    """The mean of each window."""
    return _pool(graph, name, "average_pool", x, kernel, stride, padding)


def adaptive_average_pool(graph: GraphBuilder, name: str, x: Activation, side: int) -> Activation:
    """The mean of each of side x side windows that share the image evenly, whatever its size."""
    channels, height, width = x.shape
    dims = {
        "channels": channels,
        "height": side,
        "width": side,
        "kernel_height": -(-height // side),
        "kernel_width": -(-width // side),
    }
    return graph.operator(name, "average_pool", dims, {x: IMAGE}, IMAGE)


def global_average_pool(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """The mean of each channel, (channels, 1, 1)."""
    channels, height, width = x.shape
    dims = {"channels": channels, "kernel_height": height, "kernel_width": width}
    read = ("channels", "kernel_height", "kernel_width")
    return graph.operator(name, "average_pool", dims, {x: read}, ("channels",), shape=(channels, 1, 1))


def flatten(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """(channels, height, width) as (features,): a view."""
    dims = {axis: size for axis, size in zip(IMAGE, x.shape, strict=True) if size > 1} or {"channels": 1}
    axes = tuple(dims)
    return graph.operator(name, "flatten", dims, {x: axes}, axes, shape=(prod(x.shape),), path="")


def _pool(
    graph: GraphBuilder, name: str, kind: str, x: Activation, kernel: int, stride: int, padding: int
) -> Activation:
    channels, height, width = x.shape
    dims = {
        "channels": channels,
        "height": _windows(height, kernel, stride, padding),
        "width": _windows(width, kernel, stride, padding),
        "kernel_height": kernel,
        "kernel_width": kernel,
    }
    return graph.operator(name, kind, dims, {x: IMAGE}, IMAGE, attributes=_attributes(stride, (padding, padding)))


def _windows(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _pair(both: int | Pair) -> Pair:
    return (both, both) if isinstance(both, int) else both


def _attributes(stride: int, padding: Pair) -> dict[str, int]:
    if padding[0] == padding[1]:
        return {"stride": stride, "padding": padding[0]}
    return {"stride": stride, "padding_height": padding[0], "padding_width": padding[1]}
