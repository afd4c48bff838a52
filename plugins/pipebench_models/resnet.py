"""Residual networks of bottleneck blocks (He et al. 2016, table 1) at the granularity of torchvision's modules."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.image_operators import (
    IMAGE,
    batch_norm,
    conv2d,
    flatten,
    global_average_pool,
    max_pool,
    relu,
)
from pipebench_models.image_options import ResNetOptions
from pipebench_models.shared_operators import add, linear

WIDTHS, STRIDES = (64, 128, 256, 512), (1, 2, 2, 2)
"""Width of each stage's blocks and stride of its first block."""
EXPANSION = 4


def build_resnet50(context: Context) -> OperatorGraph:
    """175 operators; `layer` counts the stem as 0, then the 16 blocks, then the head."""
    return _build("resnet50", (3, 4, 6, 3), cast(ResNetOptions, context.options))


def build_resnet101(context: Context) -> OperatorGraph:
    """345 operators; `layer` counts the stem as 0, then the 33 blocks, then the head."""
    return _build("resnet101", (3, 4, 23, 3), cast(ResNetOptions, context.options))


def build_resnet152(context: Context) -> OperatorGraph:
    """515 operators; `layer` counts the stem as 0, then the 50 blocks, then the head."""
    return _build("resnet152", (3, 8, 36, 3), cast(ResNetOptions, context.options))


def _build(name: str, blocks_of_stages: tuple[int, ...], options: ResNetOptions) -> OperatorGraph:
    graph = GraphBuilder(name)
    graph.layer = 0
    x = graph.input("image", 3, options.image_size, options.image_size)
    x = conv2d(graph, "conv1", x, 64 * options.width, kernel=7, stride=2)
    x = relu(graph, "relu", batch_norm(graph, "bn1", x))
    x = max_pool(graph, "maxpool", x, kernel=3, stride=2, padding=1)
    for stage, (width, blocks, stride) in enumerate(zip(WIDTHS, blocks_of_stages, STRIDES, strict=True), start=1):
        for block in range(blocks):
            graph.layer += 1
            x = _bottleneck(graph, f"layer{stage}.{block}", x, width * options.width, stride if block == 0 else 1)
    graph.layer += 1
    x = flatten(graph, "flatten", global_average_pool(graph, "avgpool", x))
    linear(graph, "fc", x, options.classes)
    return graph.graph()


def _bottleneck(graph: GraphBuilder, name: str, x: Activation, width: int, stride: int) -> Activation:
    """1x1, 3x3, 1x1 convolutions and the residual connection, projected where the shape changes."""
    shortcut = x
    y = _convolution_norm(graph, name, 1, x, width, kernel=1)
    y = relu(graph, f"{name}.relu1", y, path=f"{name}.relu")
    y = _convolution_norm(graph, name, 2, y, width, kernel=3, stride=stride)
    y = relu(graph, f"{name}.relu2", y, path=f"{name}.relu")
    y = _convolution_norm(graph, name, 3, y, EXPANSION * width, kernel=1)
    if x.shape != y.shape:
        shortcut = conv2d(graph, f"{name}.downsample.0", x, EXPANSION * width, kernel=1, stride=stride)
        shortcut = batch_norm(graph, f"{name}.downsample.1", shortcut)
    y = add(graph, f"{name}.add", y, shortcut, IMAGE, path=name)
    return relu(graph, f"{name}.relu3", y, path=f"{name}.relu")


def _convolution_norm(
    graph: GraphBuilder, name: str, number: int, x: Activation, channels: int, *, kernel: int, stride: int = 1
) -> Activation:
    y = conv2d(graph, f"{name}.conv{number}", x, channels, kernel=kernel, stride=stride)
    return batch_norm(graph, f"{name}.bn{number}", y)
