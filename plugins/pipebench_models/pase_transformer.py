"""The Transformer for translation (Vaswani et al. 2017) with the vertices of the PaSE paper's prototype.

Every product of attention is an operator of its own, so that heads, queries, keys and features can be split.
"""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.contraction_operators import (
    cross_entropy,
    dense,
    product,
    softmax,
    stack,
    unstack,
    weighted,
)
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.pase_options import TranslationOptions
from pipebench_models.shared_operators import add
from pipebench_models.token_operators import TOKENS, embedding, layer_norm

HEADS = ("heads", "sequence", "head")
PROJECTED = ("parts", *HEADS)


def build(context: Context) -> OperatorGraph:
    """204 operators at 6 + 6 layers; `layer` counts the encoder's, the decoder's, then the projection."""
    options = cast(TranslationOptions, context.options)
    graph = GraphBuilder("pase-transformer")
    graph.layer = 0
    x = _embedded(graph, "encoder", options)
    for layer in range(options.layers):
        graph.layer = layer
        name = f"encoder.{layer}"
        x = _feed_forward(graph, name, _attention(graph, f"{name}.attention", x, None, options), options)
    encoded = x
    graph.layer = options.layers
    x = _embedded(graph, "decoder", options)
    for layer in range(options.layers):
        graph.layer = options.layers + layer
        name = f"decoder.{layer}"
        x = _attention(graph, f"{name}.attention", x, None, options)
        x = _attention(graph, f"{name}.across", x, encoded, options)
        x = _feed_forward(graph, name, x, options)
    graph.layer = 2 * options.layers
    cross_entropy(graph, "loss", dense(graph, "projection", x, options.vocabulary))
    return graph.graph()


def _embedded(graph: GraphBuilder, name: str, options: TranslationOptions) -> Activation:
    """Tokens looked up; the fixed encodings of positions are an input of the model."""
    ids = graph.input(f"{name}.ids", options.sequence)
    x = embedding(graph, f"{name}.embedding", ids, options.vocabulary, options.hidden)
    positions = graph.input(f"{name}.positions", *x.shape)
    return add(graph, f"{name}.positioned", x, positions, TOKENS, name)


def _attention(
    graph: GraphBuilder, name: str, x: Activation, other: Activation | None, options: TranslationOptions
) -> Activation:
    """Query, key and value in one product (of x alone, or of x and twice `other`), heads, sum with x, norm."""
    sizes = {"parts": 3, "heads": options.heads, "head": options.head}
    weight = ("parts", "heads", "features", "head")
    if other is None:
        projected = weighted(graph, f"{name}.inward", x, TOKENS, weight, PROJECTED, sizes)
    else:
        both = stack(graph, f"{name}.stack", (x, other), 3, TOKENS)
        projected = weighted(graph, f"{name}.inward", both, ("parts", *TOKENS), weight, PROJECTED, sizes)
    query, key, value = unstack(graph, f"{name}.unstack", projected, HEADS, ("query", "key", "value"))
    keys = ("heads", "keys", "head")
    scored = ("heads", "sequence", "keys")
    scores = product(graph, f"{name}.scores", query, HEADS, key, keys, scored)
    weights = softmax(graph, f"{name}.softmax", scores, scored)
    context = product(graph, f"{name}.context", weights, scored, value, keys, HEADS)
    outward = ("heads", "features", "head")
    y = weighted(graph, f"{name}.outward", context, HEADS, outward, TOKENS, {"features": options.hidden})
    return layer_norm(graph, f"{name}.norm", add(graph, f"{name}.add", x, y, TOKENS, name))


def _feed_forward(graph: GraphBuilder, name: str, x: Activation, options: TranslationOptions) -> Activation:
    """Two products with relu and dropout inside the first, sum with x, norm."""
    y = dense(graph, f"{name}.ffn1", x, options.ffn, pointwise=2)
    y = dense(graph, f"{name}.ffn2", y, options.hidden)
    return layer_norm(graph, f"{name}.norm", add(graph, f"{name}.add", x, y, TOKENS, name))
