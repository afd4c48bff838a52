"""BERT with its two pre-training losses, one operator for each task of the traced program."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.bert_layers import dense, dense_gelu, encoder_layer, task_layer_norm
from pipebench_models.bert_options import BertOptions
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.shared_operators import add
from pipebench_models.task_operators import bias, cross_entropy, elementwise, weights
from pipebench_models.token_operators import TOKENS, embedding, take_token

WORDS = "embeddings.word"


def build(context: Context) -> OperatorGraph:
    """56 operators a layer and 51 besides; the word table is also the decoder's weight.

    `layer` counts the encoder's layers; what is before and behind them has none.
    """
    options = cast(BertOptions, context.options)
    graph = GraphBuilder("bert")
    ids, types, numbers, labels = (
        graph.input(name, options.sequence) for name in ("ids", "types", "places", "labels")
    )
    x = _embedded(graph, ids, types, numbers, options)
    mask = _mask(graph, options.sequence)
    for layer in range(options.layers):
        graph.layer = layer
        x = encoder_layer(graph, f"encoder.{layer}", x, mask, options)
    graph.layer = None
    words = cross_entropy(graph, "loss.words", _word_scores(graph, x, options), labels)
    pair = cross_entropy(graph, "loss.pair", _pair_scores(graph, x, options.hidden), graph.input("next", 1))
    add(graph, "loss.sum", words, pair, ("losses",), "loss")
    return graph.graph()


def _embedded(
    graph: GraphBuilder, ids: Activation, types: Activation, numbers: Activation, options: BertOptions
) -> Activation:
    x = embedding(graph, WORDS, ids, options.vocabulary, options.hidden)
    place = embedding(graph, "embeddings.position", numbers, options.positions, options.hidden)
    kind = embedding(graph, "embeddings.type", types, 2, options.hidden)
    x = add(graph, "embeddings.add1", x, place, TOKENS, "embeddings")
    x = add(graph, "embeddings.add2", x, kind, TOKENS, "embeddings")
    x = task_layer_norm(graph, "embeddings.norm", x)
    return elementwise(graph, "embeddings.dropout", "dropout", x, axes=TOKENS)


def _mask(graph: GraphBuilder, sequence: int) -> Activation:
    """0 for words and a large negative number for padding, added to the scores of every layer. No gradient."""
    x = graph.input("mask", sequence)
    for name, kind in (
        ("unsqueezed1", "view"),
        ("unsqueezed2", "view"),
        ("cast", "copy"),
        ("inverted", "scale"),
        ("scaled", "scale"),
    ):
        x = elementwise(graph, f"mask.{name}", kind, x, axes=("keys",), gradient=False)
    return x


def _word_scores(graph: GraphBuilder, x: Activation, options: BertOptions) -> Activation:
    x = dense_gelu(graph, "words.transform", x, options.hidden)
    x = task_layer_norm(graph, "words.norm", x)
    x = weights(graph, "words.decoder.matmul", x, options.vocabulary, tied=f"{WORDS}.weight")
    return bias(graph, "words.decoder.bias", x, TOKENS)


def _pair_scores(graph: GraphBuilder, x: Activation, hidden: int) -> Activation:
    x = take_token(graph, "pooler.first", x)
    x = dense(graph, "pooler", x, hidden)
    x = elementwise(graph, "pooler.tanh", "tanh", x, axes=("features",))
    return dense(graph, "pair", x, 2)
