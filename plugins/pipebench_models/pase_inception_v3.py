"""Inception v3 as the PaSE paper's prototype describes it: no activation functions, and a loss."""

from typing import cast

from msgspec.structs import replace

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.contraction_operators import cross_entropy
from pipebench_models.fold import fold
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.image_options import PlainInceptionOptions
from pipebench_models.inception_v3 import trunk

FOLDED = ("relu", "dropout", "flatten")


def build(context: Context) -> OperatorGraph:
    """219 operators, 253 pairs of them that exchange a tensor, at image size 299 as at any other."""
    options = cast(PlainInceptionOptions, context.options)
    graph = GraphBuilder("pase-inception_v3")
    cross_entropy(graph, "loss", trunk(graph, options.image_size, options.classes))
    return replace(fold(graph.graph(), FOLDED), name="pase-inception_v3")
