"""AlexNet (Krizhevsky et al. 2012) as the PaSE paper's prototype describes it: 14 operators, a chain."""

from math import prod
from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.contraction_operators import cross_entropy, dense
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.image_operators import conv2d, flatten, max_pool
from pipebench_models.image_options import AlexNetOptions

CONVOLUTIONS = ((96, 11, 4, 0), (256, 5, 1, 2), (384, 3, 1, 1), (384, 3, 1, 1), (256, 3, 1, 1))
"""Channels, kernel, stride, padding."""
POOLED = (1, 2, 5)
"""Convolutions with a pooling of 3 by 3 windows behind them."""
HIDDEN = (4096, 4096)


def build(context: Context) -> OperatorGraph:
    """Convolutions with their relu inside, as the fully connected layers have theirs; `layer` counts both."""
    options = cast(AlexNetOptions, context.options)
    graph = GraphBuilder("pase-alexnet")
    x = graph.input("image", 3, options.image_size, options.image_size)
    for number, (channels, kernel, stride, padding) in enumerate(CONVOLUTIONS, start=1):
        graph.layer = number - 1
        x = conv2d(graph, f"conv{number}", x, channels, kernel=kernel, stride=stride, padding=padding, pointwise=1)
        if number in POOLED:
            x = max_pool(graph, f"pool{number}", x, kernel=3, stride=2)
    graph.layer = len(CONVOLUTIONS)
    x = _unravel(graph, flatten(graph, "ravel", x))
    for number, features in enumerate((*HIDDEN, options.classes), start=6):
        graph.layer = number - 1
        x = dense(graph, f"fc{number}", x, features, pointwise=1 if number < 8 else 0)
    cross_entropy(graph, "loss", x)
    return graph.graph()


def _unravel(graph: GraphBuilder, x: Activation) -> Activation:
    """The flat image as features; the prototype reshapes in two steps, each a vertex."""
    size = prod(x.shape)
    return graph.operator("unravel", "flatten", {"features": size}, {x: ("features",)}, ("features",), path="")
