"""The models of the PaSE paper as its prototype describes them: products of tensors with every dim named."""

from collections.abc import Collection, Sequence
from math import prod
from typing import cast

from msgspec.structs import replace

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.inception_v3 import trunk
from pipebench_models.operators import TOKENS, add, conv2d, embedding, flatten, layer_norm, max_pool
from pipebench_models.options import AlexNetOptions, PlainInceptionOptions, RNNLMOptions, TranslationOptions

GATES = ("input", "forget", "cell", "output")


def dense_product(graph: GraphBuilder, name: str, x: Activation, features: int, pointwise: int = 0) -> Activation:
    """y = x W without bias over the last axis; x is (features,) or (sequence, features)."""
    rows = dict(zip(("sequence",), x.shape[:-1], strict=False))
    return graph.operator(
        name,
        "linear",
        {**rows, "in_features": x.shape[-1], "out_features": features},
        {x: (*rows, "in_features")},
        (*rows, "out_features"),
        parameters={"weight": ("in_features", "out_features")},
        attributes={"pointwise": pointwise} if pointwise else None,
    )


def weight_product(
    graph: GraphBuilder,
    name: str,
    x: Activation,
    read: Sequence[str],
    weight: Sequence[str],
    made: Sequence[str],
    sizes: dict[str, int],
) -> Activation:
    """x times a weight, in Einstein's notation: dims of x, of the weight, of the result; sizes of what x lacks."""
    dims = dict(zip(read, x.shape, strict=True)) | sizes
    return graph.operator(
        name, "matmul", dims, {x: tuple(read)}, tuple(made), parameters={"weight": tuple(weight)}
    )


def product(
    graph: GraphBuilder,
    name: str,
    a: Activation,
    of_a: Sequence[str],
    b: Activation,
    of_b: Sequence[str],
    made: Sequence[str],
) -> Activation:
    """The product of two activations, in Einstein's notation."""
    dims = dict(zip((*of_a, *of_b), (*a.shape, *b.shape), strict=True))
    return graph.operator(name, "matmul", dims, {a: tuple(of_a), b: tuple(of_b)}, tuple(made))


def lstm(graph: GraphBuilder, name: str, x: Activation, layers: int) -> Activation:
    """Layers of LSTM cells over a whole sequence as one operator (PaSE, section IV-A); x is (sequence, units).

    `inputs` are contracted, `units` made: 4 gates, each a product with the input and one with the last output.
    """
    sequence, units = x.shape
    each = ("layers", "inputs", "units")
    return graph.operator(
        name,
        "lstm",
        {"layers": layers, "sequence": sequence, "units": units, "inputs": units},
        {x: ("sequence", "inputs")},
        ("sequence", "units"),
        parameters={f"{gate}.{source}": each for gate in GATES for source in ("input", "recurrent")},
        attributes={"pointwise": 3},
    )


def softmax(graph: GraphBuilder, name: str, x: Activation, axes: Sequence[str]) -> Activation:
    """Softmax over the last axis."""
    return graph.operator(name, "softmax", dict(zip(axes, x.shape, strict=True)), {x: tuple(axes)}, tuple(axes))


def named_cross_entropy(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Softmax and cross-entropy over the last axis; x is (classes,) or (sequence, classes).

    What it makes is the gradient that its own backward starts from, of the size of x.
    """
    axes = ("sequence", "classes")[-len(x.shape) :]
    return graph.operator(name, "cross_entropy", dict(zip(axes, x.shape, strict=True)), {x: axes}, axes)


def stack(
    graph: GraphBuilder, name: str, parts: Sequence[Activation], count: int, axes: Sequence[str]
) -> Activation:
    """`count` tensors of one shape as one with an axis `parts` in front; one read twice stands in `parts` once."""
    shape = dict(zip(axes, parts[0].shape, strict=True))
    return graph.operator(
        name, "stack", {"parts": count} | shape, dict.fromkeys(parts, tuple(axes)), ("parts", *axes)
    )


def unstack(
    graph: GraphBuilder, name: str, x: Activation, axes: Sequence[str], names: Sequence[str]
) -> tuple[Activation, ...]:
    """A tensor cut along its first axis, `parts`, into tensors of these names; `axes` are the others."""
    dims = dict(zip(("parts", *axes), x.shape, strict=True))
    return graph.several(name, "unstack", dims, {x: ("parts", *axes)}, tuple(axes), names)


def fold(graph: OperatorGraph, kinds: Collection[str]) -> OperatorGraph:
    """Operators of these kinds, each with one input and no parameter, left out; their readers read that input."""
    instead: dict[str, str] = {}
    kept = []
    for position in graph.topological:
        operator = graph.operators[position]
        if operator.kind in kinds:
            (read,) = operator.inputs
            (made,) = graph.outputs[position]
            instead[graph.tensors[made].name] = instead.get(read, read)
        else:
            kept.append(operator)
    return replace(
        graph,
        operators=tuple(_rename_inputs(operator, instead) for operator in kept),
        tensors=tuple(tensor for tensor in graph.tensors if tensor.name not in instead),
    )


def _rename_inputs(operator: Operator, instead: dict[str, str]) -> Operator:
    return replace(
        operator,
        inputs=tuple(instead.get(name, name) for name in operator.inputs),
        axes={instead.get(name, name): axes for name, axes in operator.axes.items()},
    )


CONVOLUTIONS = ((96, 11, 4, 0), (256, 5, 1, 2), (384, 3, 1, 1), (384, 3, 1, 1), (256, 3, 1, 1))
"""Channels, kernel, stride, padding."""
ALEXNET_POOLED = (1, 2, 5)
"""Convolutions with a pooling of 3 by 3 windows behind them."""
ALEXNET_HIDDEN = (4096, 4096)


def build_pase_alexnet(context: Context) -> OperatorGraph:
    """Convolutions with their relu inside, as the fully connected layers have theirs; `layer` counts both."""
    options = cast(AlexNetOptions, context.options)
    graph = GraphBuilder("pase-alexnet")
    x = graph.input("image", 3, options.image_size, options.image_size)
    for number, (channels, kernel, stride, padding) in enumerate(CONVOLUTIONS, start=1):
        graph.layer = number - 1
        x = conv2d(graph, f"conv{number}", x, channels, kernel=kernel, stride=stride, padding=padding, pointwise=1)
        if number in ALEXNET_POOLED:
            x = max_pool(graph, f"pool{number}", x, kernel=3, stride=2)
    graph.layer = len(CONVOLUTIONS)
    x = _unravel(graph, flatten(graph, "ravel", x))
    for number, features in enumerate((*ALEXNET_HIDDEN, options.classes), start=6):
        graph.layer = number - 1
        x = dense_product(graph, f"fc{number}", x, features, pointwise=1 if number < 8 else 0)
    named_cross_entropy(graph, "loss", x)
    return graph.graph()


def _unravel(graph: GraphBuilder, x: Activation) -> Activation:
    """The flat image as features; the prototype reshapes in two steps, each a vertex."""
    size = prod(x.shape)
    return graph.operator("unravel", "flatten", {"features": size}, {x: ("features",)}, ("features",), path="")


FOLDED = ("relu", "dropout", "flatten")


def build_pase_inception_v3(context: Context) -> OperatorGraph:
    """219 operators, 253 pairs of them that exchange a tensor, at image size 299 as at any other."""
    options = cast(PlainInceptionOptions, context.options)
    graph = GraphBuilder("pase-inception_v3")
    named_cross_entropy(graph, "loss", trunk(graph, options.image_size, options.classes))
    return replace(fold(graph.graph(), FOLDED), name="pase-inception_v3")


def build_rnnlm(context: Context) -> OperatorGraph:
    """Embedding, all LSTM layers as one operator, projection to the vocabulary, loss."""
    options = cast(RNNLMOptions, context.options)
    graph = GraphBuilder("pase-rnnlm")
    graph.layer = 0
    x = embedding(graph, "embedding", graph.input("words", options.sequence), options.vocabulary, options.units)
    graph.layer = 1
    x = lstm(graph, "lstm", x, options.layers)
    graph.layer = 2
    named_cross_entropy(graph, "loss", dense_product(graph, "projection", x, options.vocabulary))
    return graph.graph()


HEADS = ("heads", "sequence", "head")
PROJECTED = ("parts", *HEADS)


def build_translation_transformer(context: Context) -> OperatorGraph:
    """204 operators at 6 + 6 layers; `layer` counts the encoder's, the decoder's, then the projection."""
    options = cast(TranslationOptions, context.options)
    graph = GraphBuilder("pase-transformer")
    graph.layer = 0
    x = _embeddings(graph, "encoder", options)
    for layer in range(options.layers):
        graph.layer = layer
        name = f"encoder.{layer}"
        x = _feed_forward(graph, name, _attention(graph, f"{name}.attention", x, None, options), options)
    encoded = x
    graph.layer = options.layers
    x = _embeddings(graph, "decoder", options)
    for layer in range(options.layers):
        graph.layer = options.layers + layer
        name = f"decoder.{layer}"
        x = _attention(graph, f"{name}.attention", x, None, options)
        x = _attention(graph, f"{name}.across", x, encoded, options)
        x = _feed_forward(graph, name, x, options)
    graph.layer = 2 * options.layers
    named_cross_entropy(graph, "loss", dense_product(graph, "projection", x, options.vocabulary))
    return graph.graph()


def _embeddings(graph: GraphBuilder, name: str, options: TranslationOptions) -> Activation:
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
        projected = weight_product(graph, f"{name}.inward", x, TOKENS, weight, PROJECTED, sizes)
    else:
        both = stack(graph, f"{name}.stack", (x, other), 3, TOKENS)
        projected = weight_product(graph, f"{name}.inward", both, ("parts", *TOKENS), weight, PROJECTED, sizes)
    query, key, value = unstack(graph, f"{name}.unstack", projected, HEADS, ("query", "key", "value"))
    keys = ("heads", "keys", "head")
    scored = ("heads", "sequence", "keys")
    scores = product(graph, f"{name}.scores", query, HEADS, key, keys, scored)
    weights = softmax(graph, f"{name}.softmax", scores, scored)
    context = product(graph, f"{name}.context", weights, scored, value, keys, HEADS)
    outward = ("heads", "features", "head")
    y = weight_product(graph, f"{name}.outward", context, HEADS, outward, TOKENS, {"features": options.hidden})
    return layer_norm(graph, f"{name}.norm", add(graph, f"{name}.add", x, y, TOKENS, name))


def _feed_forward(graph: GraphBuilder, name: str, x: Activation, options: TranslationOptions) -> Activation:
    """Two products with relu and dropout inside the first, sum with x, norm."""
    y = dense_product(graph, f"{name}.ffn1", x, options.ffn, pointwise=2)
    y = dense_product(graph, f"{name}.ffn2", y, options.hidden)
    return layer_norm(graph, f"{name}.norm", add(graph, f"{name}.add", x, y, TOKENS, name))
