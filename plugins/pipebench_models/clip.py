"""CLIP with a vision transformer (Radford et al. 2021, section 2.4 and table 20)."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.branch_options import CLIPOptions
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.token_operators import (
    embedding,
    layer_norm,
    patches,
    positions,
    projection,
    similarity,
    take_token,
)
from pipebench_models.transformer_layers import transformer_layers
from pipebench_models.transformer_options import TransformerOptions


def build(context: Context) -> OperatorGraph:
    """The image branch, the text branch, their similarity: 180 operators for ViT-B/32."""
    options = cast(CLIPOptions, context.options)
    graph = GraphBuilder("clip")
    similarity(graph, "similarity", _image(graph, options), _text(graph, options))
    return graph.graph()


def _image(graph: GraphBuilder, options: CLIPOptions) -> Activation:
    side = options.image_size // options.patch
    x = graph.input("image", 3, options.image_size, options.image_size)
    x = patches(graph, "visual.patches", x, options.image_width, options.patch)
    x = positions(graph, "visual.positions", x, side * side + 1)
    x = layer_norm(graph, "visual.norm_before", x)
    layers = _layers(options.image_layers, options.image_width, options.image_heads, side * side + 1)
    x = transformer_layers(graph, "visual.", x, layers, 0)
    x = take_token(graph, "visual.token", x)
    return projection(graph, "visual.projection", x, options.embedding)


def _text(graph: GraphBuilder, options: CLIPOptions) -> Activation:
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
