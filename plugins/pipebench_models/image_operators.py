"""Operators of convolutional networks. Activations are (channels, height, width); `height` and `width` are the
output's, so that the iteration space is that of the result.
"""

from collections.abc import Sequence
from math import prod

from pipebench_models.graph_builder import Activation, GraphBuilder

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
