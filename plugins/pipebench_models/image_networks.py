"""ResNet, DenseNet-121 and VGG-16 at the granularity of torchvision's modules."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.operators import (
    IMAGE,
    adaptive_average_pool,
    add,
    average_pool,
    batch_norm,
    concat_channels,
    conv2d,
    dropout,
    flatten,
    global_average_pool,
    linear,
    max_pool,
    relu,
)
from pipebench_models.options import ImageOptions, ResNetOptions

WIDTHS, STRIDES = (64, 128, 256, 512), (1, 2, 2, 2)
"""Width of each stage's blocks and stride of its first block."""
EXPANSION = 4


def build_resnet50(context: Context) -> OperatorGraph:
    """175 operators; `layer` counts the stem as 0, then the 16 blocks, then the head."""
    return _build_resnet("resnet50", (3, 4, 6, 3), cast(ResNetOptions, context.options))


def build_resnet101(context: Context) -> OperatorGraph:
    """345 operators; `layer` counts the stem as 0, then the 33 blocks, then the head."""
    return _build_resnet("resnet101", (3, 4, 23, 3), cast(ResNetOptions, context.options))


def build_resnet152(context: Context) -> OperatorGraph:
    """515 operators; `layer` counts the stem as 0, then the 50 blocks, then the head."""
    return _build_resnet("resnet152", (3, 8, 36, 3), cast(ResNetOptions, context.options))


def _build_resnet(name: str, blocks_of_stages: tuple[int, ...], options: ResNetOptions) -> OperatorGraph:
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


DENSENET_BLOCKS = (6, 12, 24, 16)
"""Dense layers of each block."""
GROWTH, BOTTLENECK, STEM = 32, 128, 64


def build_densenet121(context: Context) -> OperatorGraph:
    """427 operators; `layer` counts the stem as 0, then the 58 dense layers, then the head.

    A transition belongs to the layer before it. Each dense layer joins its own channels to all before it, as the
    first torchvision release did: one tensor leaves a dense layer, with the same bytes as all features apart.
    """
    options = cast(ImageOptions, context.options)
    graph = GraphBuilder("densenet121")
    graph.layer = 0
    x = graph.input("image", 3, options.image_size, options.image_size)
    x = conv2d(graph, "conv0", x, STEM, kernel=7, stride=2)
    x = relu(graph, "relu0", batch_norm(graph, "norm0", x))
    x = max_pool(graph, "pool0", x, kernel=3, stride=2, padding=1)
    for block, layers in enumerate(DENSENET_BLOCKS, start=1):
        for layer in range(1, layers + 1):
            graph.layer += 1
            x = _dense_layer(graph, f"block{block}.layer{layer}", x)
        if block < len(DENSENET_BLOCKS):
            x = _transition(graph, f"transition{block}", x)
    graph.layer += 1
    x = relu(graph, "relu5", batch_norm(graph, "norm5", x))
    x = flatten(graph, "flatten", global_average_pool(graph, "avgpool", x))
    linear(graph, "classifier", x, options.classes)
    return graph.graph()


def _dense_layer(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    y = relu(graph, f"{name}.relu1", batch_norm(graph, f"{name}.norm1", x))
    y = conv2d(graph, f"{name}.conv1", y, BOTTLENECK, kernel=1)
    y = relu(graph, f"{name}.relu2", batch_norm(graph, f"{name}.norm2", y))
    y = conv2d(graph, f"{name}.conv2", y, GROWTH, kernel=3)
    return concat_channels(graph, f"{name}.concat", (x, y))


def _transition(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Half the channels, half the side."""
    y = relu(graph, f"{name}.relu", batch_norm(graph, f"{name}.norm", x))
    y = conv2d(graph, f"{name}.conv", y, x.shape[0] // 2, kernel=1)
    return average_pool(graph, f"{name}.pool", y, kernel=2, stride=2)


VGG_BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of each block; a pooling that halves the image ends it."""
VGG_POOLED, VGG_HIDDEN = 7, 4096


def build_vgg16(context: Context) -> OperatorGraph:
    """40 operators, a chain; `layer` counts the five blocks, then the classifier. Names are torchvision's."""
    options = cast(ImageOptions, context.options)
    graph = GraphBuilder("vgg16")
    x = graph.input("image", 3, options.image_size, options.image_size)
    module = 0
    for block, (channels, convolutions) in enumerate(VGG_BLOCKS):
        graph.layer = block
        for _ in range(convolutions):
            x = conv2d(graph, f"features.{module}", x, channels, kernel=3, bias=True)
            x = relu(graph, f"features.{module + 1}", x)
            module += 2
        x = max_pool(graph, f"features.{module}", x, kernel=2, stride=2)
        module += 1
    graph.layer = len(VGG_BLOCKS)
    x = flatten(graph, "flatten", adaptive_average_pool(graph, "avgpool", x, VGG_POOLED))
    for first in (0, 3):
        x = linear(graph, f"classifier.{first}", x, VGG_HIDDEN)
        x = relu(graph, f"classifier.{first + 1}", x)
        x = dropout(graph, f"classifier.{first + 2}", x)
    linear(graph, "classifier.6", x, options.classes)
    return graph.graph()
