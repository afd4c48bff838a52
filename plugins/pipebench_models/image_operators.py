"""Operators of convolutional networks. Activations are (channels, height, width); `height` and `width` are the
output's, so that the iteration space is that of the result.
"""

from pipebench_models.graph_builder import Activation, GraphBuilder

IMAGE = ("channels", "height", "width")


def _windows(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def conv2d(
    graph: GraphBuilder, name: str, x: Activation, channels: int, *, kernel: int, stride: int = 1
) -> Activation:
    """A square convolution without bias, padded so that stride 1 keeps the size."""
    padding = kernel // 2
    in_channels, height, width = x.shape
    return graph.operator(
        name,
        "conv2d",
        {
            "out_channels": channels,
            "height": _windows(height, kernel, stride, padding),
            "width": _windows(width, kernel, stride, padding),
            "in_channels": in_channels,
            "kernel_height": kernel,
            "kernel_width": kernel,
        },
        {x: ("in_channels", "height", "width")},
        ("out_channels", "height", "width"),
        parameters={"weight": ("out_channels", "in_channels", "kernel_height", "kernel_width")},
        attributes={"stride": stride, "padding": padding},
    )


def batch_norm(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Normalises each channel over the samples; scale and shift are parameters."""
    dims = dict(zip(IMAGE, x.shape, strict=True))
    scale_and_shift = {"weight": ("channels",), "bias": ("channels",)}
    return graph.operator(name, "batch_norm", dims, {x: IMAGE}, IMAGE, parameters=scale_and_shift)


def relu(graph: GraphBuilder, name: str, x: Activation, path: str | None = None) -> Activation:
    """max(x, 0), in place."""
    return graph.operator(name, "relu", dict(zip(IMAGE, x.shape, strict=True)), {x: IMAGE}, IMAGE, path=path)


def max_pool(graph: GraphBuilder, name: str, x: Activation, *, kernel: int, stride: int) -> Activation:
    """The largest value of each window."""
    padding = kernel // 2
    channels, height, width = x.shape
    dims = {
        "channels": channels,
        "height": _windows(height, kernel, stride, padding),
        "width": _windows(width, kernel, stride, padding),
        "kernel_height": kernel,
        "kernel_width": kernel,
    }
    attributes = {"stride": stride, "padding": padding}
    return graph.operator(name, "max_pool", dims, {x: IMAGE}, IMAGE, attributes=attributes)


def global_average_pool(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """The mean of each channel, (channels, 1, 1)."""
    channels, height, width = x.shape
    dims = {"channels": channels, "kernel_height": height, "kernel_width": width}
    read = ("channels", "kernel_height", "kernel_width")
    return graph.operator(name, "average_pool", dims, {x: read}, ("channels",), shape=(channels, 1, 1))


def flatten(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """(channels, 1, 1) as (channels,): a view."""
    return graph.operator(name, "flatten", {"channels": x.shape[0]}, {x: ("channels",)}, ("channels",), path="")
