"""CANDLE-Uno as the GraphPipe paper has it (appendix A.2)."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.branch_options import CandleUnoOptions
from pipebench_models.feature_operators import concat, feed_forward
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.shared_operators import linear


def build(context: Context) -> OperatorGraph:
    """Branches that meet in one concat before the output: 30 operators for 7 branches of 4 layers."""
    options = cast(CandleUnoOptions, context.options)
    graph = GraphBuilder("candle-uno")
    ends = []
    for branch in range(options.branches):
        x = graph.input(f"branches.{branch}.features", options.hidden)
        ends.append(feed_forward(graph, f"branches.{branch}.", x, [options.hidden] * options.layers))
    graph.layer = options.layers * options.branches
    linear(graph, "output", concat(graph, "concat", ends), options.outputs)
    return graph.graph()
