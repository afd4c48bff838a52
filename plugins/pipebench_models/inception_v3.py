"""Inception v3 (Szegedy et al. 2016) as torchvision builds it: stem, eleven mixed blocks, head."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.image_operators import (
    average_pool,
    dropout,
    flatten,
    global_average_pool,
    max_pool,
)
from pipebench_models.image_options import InceptionOptions
from pipebench_models.inception_blocks import basic_conv, block_a, block_b, block_c, block_d, block_e
from pipebench_models.shared_operators import linear


def build(context: Context) -> OperatorGraph:
    """314 operators, 324 with the auxiliary classifier; `layer` counts the stem, the eleven blocks, the head."""
    options = cast(InceptionOptions, context.options)
    graph = GraphBuilder("inception_v3")
    trunk(graph, options.image_size, options.classes, options.auxiliary)
    return graph.graph()


def trunk(graph: GraphBuilder, image_size: int, classes: int, auxiliary: bool = False) -> Activation:
    """The whole network; returns what its last layer makes."""
    graph.layer = 0
    x = _stem(graph, graph.input("image", 3, image_size, image_size))
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = block_a(graph, f"Mixed_{name}", x, pooled)
    x = block_b(graph, "Mixed_6a", x)
    for name, inner in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = block_c(graph, f"Mixed_{name}", x, inner)
    if auxiliary:
        _auxiliary(graph, x, classes)
    x = block_d(graph, "Mixed_7a", x)
    for name in ("7b", "7c"):
        x = block_e(graph, f"Mixed_{name}", x)
    graph.layer += 1
    x = flatten(graph, "flatten", global_average_pool(graph, "avgpool", x))
    return linear(graph, "fc", dropout(graph, "dropout", x), classes)


def _stem(graph: GraphBuilder, x: Activation) -> Activation:
    x = basic_conv(graph, "Conv2d_1a_3x3", x, 32, kernel=3, stride=2, padding=0)
    x = basic_conv(graph, "Conv2d_2a_3x3", x, 32, kernel=3, padding=0)
    x = basic_conv(graph, "Conv2d_2b_3x3", x, 64, kernel=3)
    x = max_pool(graph, "maxpool1", x, kernel=3, stride=2)
    x = basic_conv(graph, "Conv2d_3b_1x1", x, 80, kernel=1)
    x = basic_conv(graph, "Conv2d_4a_3x3", x, 192, kernel=3, padding=0)
    return max_pool(graph, "maxpool2", x, kernel=3, stride=2)


def _auxiliary(graph: GraphBuilder, x: Activation, classes: int) -> None:
    """The second classifier, which training adds behind Mixed_6e."""
    y = average_pool(graph, "AuxLogits.pool", x, kernel=5, stride=3)
    y = basic_conv(graph, "AuxLogits.conv0", y, 128, kernel=1)
    y = basic_conv(graph, "AuxLogits.conv1", y, 768, kernel=5, padding=0)
    y = flatten(graph, "AuxLogits.flatten", global_average_pool(graph, "AuxLogits.avgpool", y))
    linear(graph, "AuxLogits.fc", y, classes)
