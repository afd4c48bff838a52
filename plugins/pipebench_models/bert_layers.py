"""BERT's attention, feed-forward part and layer norm as tasks (Devlin et al. 2019; NVIDIA's PyTorch code)."""

from pipebench_models.bert_options import BertOptions
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.task_operators import batched_matmul, bias, elementwise, mean, moved, weights
from pipebench_models.token_operators import TOKENS

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
    context = moved(graph, f"{name}.swapped", "permute", context, ("sequence", "heads", "head"), back)
    context = moved(graph, f"{name}.contiguous", "copy", context, ("sequence", "heads", "head"), back)
    return moved(graph, f"{name}.joined", "view", context, TOKENS, (length, options.hidden))


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
    y = moved(graph, f"{name}.split", "view", y, ("sequence", "heads", "head"), split)
    return moved(
        graph, f"{name}.permuted", "permute", y, ("heads", "sequence", "head"), (heads, length, hidden // heads)
    )
