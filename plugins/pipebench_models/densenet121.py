"""DenseNet-121 (Huang et al. 2017, table 1) at the granularity of torchvision's modules."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.image_operators import (
    average_pool,
    batch_norm,
    concat_channels,
    conv2d,
    flatten,
    global_average_pool,
    max_pool,
    relu,
)
from pipebench_models.image_options import ImageOptions
from pipebench_models.shared_operators import linear

BLOCKS = (6, 12, 24, 16)
"""Dense layers of each block."""
GROWTH, BOTTLENECK, STEM = 32, 128, 64


def build(context: Context) -> OperatorGraph:
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
    for block, layers in enumerate(BLOCKS, start=1):
        for layer in range(1, layers + 1):
            graph.layer += 1
            x = _dense_layer(graph, f"block{block}.layer{layer}", x)
        if block < len(BLOCKS):
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
