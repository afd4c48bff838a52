"""DLRM as the GraphPipe paper has it (appendix A.2)."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.branch_options import DLRMOptions
from pipebench_models.feature_operators import concat, feed_forward
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.token_operators import embedding


def build(context: Context) -> OperatorGraph:
    """Branches that meet in one concat, feed-forward layers behind it: 40 operators for 7 + 7 branches."""
    options = cast(DLRMOptions, context.options)
    graph = GraphBuilder("dlrm")
    ends = []
    for branch in range(options.dense):
        x = graph.input(f"dense.{branch}.features", options.hidden)
        ends.append(feed_forward(graph, f"dense.{branch}.", x, [options.hidden] * options.layers))
    for branch in range(options.sparse):
        ids = graph.input(f"sparse.{branch}.ids", options.bag)
        ends.append(
            embedding(graph, f"sparse.{branch}.table", ids, options.entries, options.embedding, joined=True)
        )
    interaction = concat(graph, "interaction", ends)
    feed_forward(graph, "top.", interaction, [options.hidden] * options.top)
    return graph.graph()
