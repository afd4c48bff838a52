"""A stack of Transformer layers, shared by the Transformer models."""

from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.shared_operators import add, linear
from pipebench_models.token_operators import TOKENS, attention, layer_norm
from pipebench_models.transformer_options import TransformerOptions


def transformer_layers(
    graph: GraphBuilder, prefix: str, x: Activation, options: TransformerOptions, first_layer: int
) -> Activation:
    """Attention and two linears a layer; with options.residual the pre-norm form and a last layer norm.

    The activation function between the two linears runs inside the first.
    """
    for layer in range(options.layers):
        graph.layer = first_layer + layer
        path = f"{prefix}layers.{layer}"
        y = _normed(graph, f"{path}.norm1", x, options)
        y = attention(graph, f"{path}.attention", y, options.heads)
        x = _joined(graph, f"{path}.add1", x, y, options, path)
        y = _normed(graph, f"{path}.norm2", x, options)
        y = linear(graph, f"{path}.linear1", y, options.ffn)
        y = linear(graph, f"{path}.linear2", y, options.hidden)
        x = _joined(graph, f"{path}.add2", x, y, options, path)
    return _normed(graph, f"{prefix}norm", x, options)


def _normed(graph: GraphBuilder, name: str, x: Activation, options: TransformerOptions) -> Activation:
    return layer_norm(graph, name, x) if options.residual else x


def _joined(
    graph: GraphBuilder, name: str, x: Activation, y: Activation, options: TransformerOptions, path: str
) -> Activation:
    return add(graph, name, x, y, TOKENS, path) if options.residual else y
