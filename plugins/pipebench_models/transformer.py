"""The sequential Transformer of the GraphPipe paper (appendix A.3)."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.transformer_layers import transformer_layers
from pipebench_models.transformer_options import TransformerOptions


def build(context: Context) -> OperatorGraph:
    """A chain of three operators a layer."""
    options = cast(TransformerOptions, context.options)
    graph = GraphBuilder("transformer")
    x = graph.input("tokens", options.sequence, options.hidden, gradient=True)
    transformer_layers(graph, "", x, options, first_layer=0)
    return graph.graph()
