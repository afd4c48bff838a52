"""The Multi-Modal Transformer of the GraphPipe paper (appendix A.2)."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.branch_options import MMTOptions
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.token_operators import concat_features
from pipebench_models.transformer_layers import transformer_layers


def build(context: Context) -> OperatorGraph:
    """Branches of Transformer layers that meet in one concat: 97 operators for 4 branches of 8 layers."""
    options = cast(MMTOptions, context.options)
    graph = GraphBuilder("mmt")
    ends = []
    for branch in range(options.branches):
        x = graph.input(f"branches.{branch}.tokens", options.sequence, options.hidden, gradient=True)
        ends.append(transformer_layers(graph, f"branches.{branch}.", x, options, branch * options.layers))
    graph.layer = None
    concat_features(graph, "concat", ends)
    return graph.graph()
