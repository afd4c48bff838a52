"""The recurrent language model of the PaSE paper (after Mikolov et al. 2010): four operators, a chain."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.contraction_operators import cross_entropy, dense, lstm
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.pase_options import RNNLMOptions
from pipebench_models.token_operators import embedding


def build(context: Context) -> OperatorGraph:
    """Embedding, all LSTM layers as one operator, projection to the vocabulary, loss."""
    options = cast(RNNLMOptions, context.options)
    graph = GraphBuilder("pase-rnnlm")
    graph.layer = 0
    x = embedding(graph, "embedding", graph.input("words", options.sequence), options.vocabulary, options.units)
    graph.layer = 1
    x = lstm(graph, "lstm", x, options.layers)
    graph.layer = 2
    cross_entropy(graph, "loss", dense(graph, "projection", x, options.vocabulary))
    return graph.graph()
