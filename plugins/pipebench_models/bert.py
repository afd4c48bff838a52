"""BERT with its two pre-training losses, one operator for each task of the traced program (Devlin et al. 2019)."""

from collections.abc import Mapping
from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.operators import TOKENS, add, embedding, take_token
from pipebench_models.options import BertOptions

Axes = tuple[str, ...]


def elementwise(
    graph: GraphBuilder, name: str, kind: str, *inputs: Activation, axes: Axes, gradient: bool = True
) -> Activation:
    """One pass over activations; the output has the shape of the first, whose axes are named `axes`.

    Others may be narrower: they span the last of these axes, and where a side is 1 they span less.
    """
    dims = dict(zip(axes, inputs[0].shape, strict=True))
    read = {each: _axes_over(each, dims) for each in inputs}
    return graph.operator(name, kind, dims, read, axes, path=name.rpartition(".")[0], gradient=gradient)


def bias(graph: GraphBuilder, name: str, x: Activation, axes: Axes, kind: str = "bias") -> Activation:
    """x + b (or x * w, kind `gain`) with one parameter a feature; the last axis is the features'."""
    dims = dict(zip(axes, x.shape, strict=True))
    path = name.rpartition(".")[0]
    return graph.operator(name, kind, dims, {x: axes}, axes, parameters={"weight": axes[-1:]}, path=path)


def weights(graph: GraphBuilder, name: str, x: Activation, features: int, tied: str = "") -> Activation:
    """x W over the last axis, no bias. tied: the parameter of another operator to use, (features, in_features)."""
    rows = dict(zip(("sequence",), x.shape[:-1], strict=False))
    axes = ("out_features", "in_features")
    return graph.operator(
        name,
        "linear",
        {**rows, "in_features": x.shape[-1], "out_features": features},
        {x: (*rows, "in_features")},
        (*rows, "out_features"),
        parameters={} if tied else {"weight": axes},
        shared={tied: axes} if tied else {},
        path=name.rpartition(".")[0],
    )


def mean(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """The mean of each token's features, (sequence, 1)."""
    dims = {"sequence": x.shape[0], "features": x.shape[1]}
    return graph.operator(
        name,
        "mean",
        dims,
        {x: ("sequence", "features")},
        ("sequence",),
        shape=(x.shape[0], 1),
        path=name.rpartition(".")[0],
    )


def batched_matmul(
    graph: GraphBuilder,
    name: str,
    dims: Mapping[str, int],
    a: tuple[Activation, Axes],
    b: tuple[Activation, Axes],
    output: Axes,
) -> Activation:
    """The product of two activations, head by head; what is in both and not in the output is summed over."""
    path = name.rpartition(".")[0]
    return graph.operator(name, "matmul", dims, {a[0]: a[1], b[0]: b[1]}, output, path=path)


def move_axes(
    graph: GraphBuilder, name: str, kind: str, x: Activation, axes: Axes, shape: tuple[int, ...]
) -> Activation:
    """The same elements in another shape or order: `view` and `permute` run no kernel, `copy` does.

    axes: those of the result, of sizes `shape`, by which the elements of x are named too.
    """
    dims = dict(zip(axes, shape, strict=True))
    return graph.operator(name, kind, dims, {x: axes}, axes, path=name.rpartition(".")[0])


def cross_entropy(graph: GraphBuilder, name: str, logits: Activation, labels: Activation) -> Activation:
    """log_softmax and nll_loss over the last axis of logits: one number."""
    rows = dict(zip(("sequence",), logits.shape[:-1], strict=False))
    spanned = (*rows, "classes")
    dims = {**rows, "classes": logits.shape[-1]}
    logs = graph.operator(f"{name}.log_softmax", "softmax", dims, {logits: spanned}, spanned, path=name)
    return graph.operator(
        f"{name}.nll",
        "nll",
        {**dims, "losses": 1},
        {logs: spanned, labels: tuple(rows) or ("losses",)},
        ("losses",),
        path=name,
    )


def _axes_over(x: Activation, dims: Mapping[str, int]) -> Axes:
    last = list(dims)[len(dims) - len(x.shape) :]
    return tuple(axis for axis, size in zip(last, x.shape, strict=True) if size == dims[axis])


SCORES = ("heads", "sequence", "keys")


def dense(graph: GraphBuilder, name: str, x: Activation, features: int) -> Activation:
    """A linear layer as two tasks."""
    return bias(graph, f"{name}.bias", weights(graph, f"{name}.matmul", x, features), TOKENS[-len(x.shape) :])


def dense_gelu(graph: GraphBuilder, name: str, x: Activation, features: int) -> Activation:
    """A linear layer and x * 0.5 * (1 + erf(x / sqrt 2)): seven tasks."""
    y = dense(graph, name, x, features)
    half = elementwise(graph, f"{name}.half", "scale", y, axes=TOKENS)
    inner = elementwise(graph, f"{name}.divided", "scale", y, axes=TOKENS)
    inner = elementwise(graph, f"{name}.erf", "erf", inner, axes=TOKENS)
    inner = elementwise(graph, f"{name}.plus_one", "scale", inner, axes=TOKENS)
    return elementwise(graph, f"{name}.product", "mul", half, inner, axes=TOKENS)


def task_layer_norm(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Layer norm as ten tasks."""
    centre = mean(graph, f"{name}.mean", x)
    deviation = elementwise(graph, f"{name}.deviation", "sub", x, centre, axes=TOKENS)
    squared = elementwise(graph, f"{name}.squared", "square", deviation, axes=TOKENS)
    variance = mean(graph, f"{name}.variance", squared)
    centred = elementwise(graph, f"{name}.centred", "sub", x, centre, axes=TOKENS)
    row = ("sequence", "one")
    variance = elementwise(graph, f"{name}.plus_epsilon", "scale", variance, axes=row)
    root = elementwise(graph, f"{name}.root", "sqrt", variance, axes=row)
    y = elementwise(graph, f"{name}.normalised", "div", centred, root, axes=TOKENS)
    y = bias(graph, f"{name}.scaled", y, TOKENS, kind="gain")
    return bias(graph, f"{name}.shifted", y, TOKENS)


def self_attention(
    graph: GraphBuilder, name: str, x: Activation, mask: Activation, options: BertOptions
) -> Activation:
    """Multi-head attention up to the joined heads: 21 tasks."""
    heads, length = options.head_count, x.shape[0]
    width = options.hidden // heads
    query, key, value = (_heads(graph, f"{name}.{each}", x, heads) for each in ("query", "key", "value"))
    dims = {"heads": heads, "sequence": length, "keys": length, "head": width}
    scores = batched_matmul(
        graph,
        f"{name}.scores",
        dims,
        (query, ("heads", "sequence", "head")),
        (key, ("heads", "keys", "head")),
        SCORES,
    )
    scores = elementwise(graph, f"{name}.scaled", "scale", scores, axes=SCORES)
    scores = elementwise(graph, f"{name}.masked", "add", scores, mask, axes=SCORES)
    shares = elementwise(graph, f"{name}.softmax", "softmax", scores, axes=SCORES)
    shares = elementwise(graph, f"{name}.dropout", "dropout", shares, axes=SCORES)
    context = batched_matmul(
        graph,
        f"{name}.context",
        dims,
        (shares, SCORES),
        (value, ("heads", "keys", "head")),
        ("heads", "sequence", "head"),
    )
    back = (length, heads, width)
    context = move_axes(graph, f"{name}.swapped", "permute", context, ("sequence", "heads", "head"), back)
    context = move_axes(graph, f"{name}.contiguous", "copy", context, ("sequence", "heads", "head"), back)
    return move_axes(graph, f"{name}.joined", "view", context, TOKENS, (length, options.hidden))


def encoder_layer(
    graph: GraphBuilder, name: str, x: Activation, mask: Activation, options: BertOptions
) -> Activation:
    """One layer in post-norm form: 56 tasks."""
    y = self_attention(graph, f"{name}.attention", x, mask, options)
    x = _residual(graph, f"{name}.attention.output", y, x, options.hidden)
    y = dense_gelu(graph, f"{name}.intermediate", x, options.inner)
    return _residual(graph, f"{name}.output", y, x, options.hidden)


def _residual(graph: GraphBuilder, name: str, y: Activation, x: Activation, hidden: int) -> Activation:
    y = dense(graph, name, y, hidden)
    y = elementwise(graph, f"{name}.dropout", "dropout", y, axes=TOKENS)
    return task_layer_norm(graph, f"{name}.norm", elementwise(graph, f"{name}.add", "add", y, x, axes=TOKENS))


def _heads(graph: GraphBuilder, name: str, x: Activation, heads: int) -> Activation:
    """A projection with its heads put first."""
    length, hidden = x.shape
    y = dense(graph, name, x, hidden)
    split = (length, heads, hidden // heads)
    y = move_axes(graph, f"{name}.split", "view", y, ("sequence", "heads", "head"), split)
    return move_axes(
        graph, f"{name}.permuted", "permute", y, ("heads", "sequence", "head"), (heads, length, hidden // heads)
    )


WORDS = "embeddings.word"


def build_bert(context: Context) -> OperatorGraph:
    """56 operators a layer and 51 besides; the word table is also the decoder's weight.

    `layer` counts the encoder's layers; what is before and behind them has none.
    """
    options = cast(BertOptions, context.options)
    graph = GraphBuilder("bert")
    ids, types, numbers, labels = (
        graph.input(name, options.sequence) for name in ("ids", "types", "places", "labels")
    )
    x = _embeddings(graph, ids, types, numbers, options)
    mask = _mask(graph, options.sequence)
    for layer in range(options.layers):
        graph.layer = layer
        x = encoder_layer(graph, f"encoder.{layer}", x, mask, options)
    graph.layer = None
    words = cross_entropy(graph, "loss.words", _word_scores(graph, x, options), labels)
    pair = cross_entropy(graph, "loss.pair", _pair_scores(graph, x, options.hidden), graph.input("next", 1))
    add(graph, "loss.sum", words, pair, ("losses",), "loss")
    return graph.graph()


def _embeddings(
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
