"""The models of the GraphPipe paper and CLIP: branches side by side, and the plain Transformer."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.operators import (
    TOKENS,
    add,
    attention,
    concat_feature_vectors,
    concat_features,
    embedding,
    feed_forward,
    layer_norm,
    linear,
    patches,
    positions,
    projection,
    similarity,
    take_token,
)
from pipebench_models.options import CandleUnoOptions, CLIPOptions, DLRMOptions, MMTOptions, TransformerOptions


def transformer_layers(
    graph: GraphBuilder, prefix: str, x: Activation, options: TransformerOptions, first_layer: int
) -> Activation:
    """Attention and two linears a layer; with options.residual the pre-norm form and a last layer norm.

    The activation function between the two linears runs inside the first.
    """
    for layer in range(options.layers):
        graph.layer = first_layer + layer
        path = f"{prefix}layers.{layer}"
        y = _optional_norm(graph, f"{path}.norm1", x, options)
        y = attention(graph, f"{path}.attention", y, options.heads)
        x = _residual_sum(graph, f"{path}.add1", x, y, options, path)
        y = _optional_norm(graph, f"{path}.norm2", x, options)
        y = linear(graph, f"{path}.linear1", y, options.ffn)
        y = linear(graph, f"{path}.linear2", y, options.hidden)
        x = _residual_sum(graph, f"{path}.add2", x, y, options, path)
    return _optional_norm(graph, f"{prefix}norm", x, options)


def _optional_norm(graph: GraphBuilder, name: str, x: Activation, options: TransformerOptions) -> Activation:
    return layer_norm(graph, name, x) if options.residual else x


def _residual_sum(
    graph: GraphBuilder, name: str, x: Activation, y: Activation, options: TransformerOptions, path: str
) -> Activation:
    return add(graph, name, x, y, TOKENS, path) if options.residual else y


def build_transformer(context: Context) -> OperatorGraph:
    """A chain of three operators a layer."""
    options = cast(TransformerOptions, context.options)
    graph = GraphBuilder("transformer")
    x = graph.input("tokens", options.sequence, options.hidden, gradient=True)
    transformer_layers(graph, "", x, options, first_layer=0)
    return graph.graph()


def build_mmt(context: Context) -> OperatorGraph:
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


def build_clip(context: Context) -> OperatorGraph:
    """The image branch, the text branch, their similarity: 180 operators for ViT-B/32."""
    options = cast(CLIPOptions, context.options)
    graph = GraphBuilder("clip")
    similarity(graph, "similarity", _image_tower(graph, options), _text_tower(graph, options))
    return graph.graph()


def _image_tower(graph: GraphBuilder, options: CLIPOptions) -> Activation:
    side = options.image_size // options.patch
    x = graph.input("image", 3, options.image_size, options.image_size)
    x = patches(graph, "visual.patches", x, options.image_width, options.patch)
    x = positions(graph, "visual.positions", x, side * side + 1)
    x = layer_norm(graph, "visual.norm_before", x)
    layers = _layers(options.image_layers, options.image_width, options.image_heads, side * side + 1)
    x = transformer_layers(graph, "visual.", x, layers, 0)
    x = take_token(graph, "visual.token", x)
    return projection(graph, "visual.projection", x, options.embedding)


def _text_tower(graph: GraphBuilder, options: CLIPOptions) -> Activation:
    graph.layer = options.image_layers
    x = graph.input("text", options.sequence)
    x = embedding(graph, "text.embedding", x, options.vocabulary, options.text_width)
    x = positions(graph, "text.positions", x, options.sequence)
    layers = _layers(options.text_layers, options.text_width, options.text_heads, options.sequence)
    x = transformer_layers(graph, "text.", x, layers, options.image_layers)
    x = take_token(graph, "text.token", x)
    return projection(graph, "text.projection", x, options.embedding)


def _layers(layers: int, width: int, heads: int, sequence: int) -> TransformerOptions:
    return TransformerOptions(
        layers=layers, hidden=width, ffn=4 * width, heads=heads, sequence=sequence, residual=True
    )


def build_dlrm(context: Context) -> OperatorGraph:
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
    interaction = concat_feature_vectors(graph, "interaction", ends)
    feed_forward(graph, "top.", interaction, [options.hidden] * options.top)
    return graph.graph()


def build_candle_uno(context: Context) -> OperatorGraph:
    """Branches that meet in one concat before the output: 30 operators for 7 branches of 4 layers."""
    options = cast(CandleUnoOptions, context.options)
    graph = GraphBuilder("candle-uno")
    ends = []
    for branch in range(options.branches):
        x = graph.input(f"branches.{branch}.features", options.hidden)
        ends.append(feed_forward(graph, f"branches.{branch}.", x, [options.hidden] * options.layers))
    graph.layer = options.layers * options.branches
    linear(graph, "output", concat_feature_vectors(graph, "concat", ends), options.outputs)
    return graph.graph()
