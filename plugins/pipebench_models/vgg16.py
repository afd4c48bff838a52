"""VGG-16 (Simonyan and Zisserman 2015, configuration D) at the granularity of torchvision's modules."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.image_operators import adaptive_average_pool, conv2d, dropout, flatten, max_pool, relu
from pipebench_models.image_options import ImageOptions
from pipebench_models.shared_operators import linear

BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of each block; a pooling that halves the image ends it."""
POOLED, HIDDEN = 7, 4096


def build(context: Context) -> OperatorGraph:
    """40 operators, a chain; `layer` counts the five blocks, then the classifier. Names are torchvision's."""
    options = cast(ImageOptions, context.options)
    graph = GraphBuilder("vgg16")
    x = graph.input("image", 3, options.image_size, options.image_size)
    module = 0
    for block, (channels, convolutions) in enumerate(BLOCKS):
        graph.layer = block
        for _ in range(convolutions):
            x = conv2d(graph, f"features.{module}", x, channels, kernel=3, bias=True)
            x = relu(graph, f"features.{module + 1}", x)
            module += 2
        x = max_pool(graph, f"features.{module}", x, kernel=2, stride=2)
        module += 1
    graph.layer = len(BLOCKS)
    x = flatten(graph, "flatten", adaptive_average_pool(graph, "avgpool", x, POOLED))
    for first in (0, 3):
        x = linear(graph, f"classifier.{first}", x, HIDDEN)
        x = relu(graph, f"classifier.{first + 1}", x)
        x = dropout(graph, f"classifier.{first + 2}", x)
    linear(graph, "classifier.6", x, options.classes)
    return graph.graph()
