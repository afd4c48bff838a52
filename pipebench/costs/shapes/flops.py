"""FLOP of one forward pass for one sample, by operator kind, from the operator's dims.

A multiply and an add are two FLOP; halve the figure of a contraction for the MAC counts that papers print.
"""

from collections.abc import Callable
from math import prod

from pipebench.costs.shapes.transformer import LAYERS, layer_shape
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.graph import Operator, OperatorGraph


def attention_projection_flops(operator: Operator) -> int:
    """The four projections of multi-head attention: two over the queries (query, output), two over the keys."""
    dims = operator.dims
    inner = dims["heads"] * dims["head"]
    rows = dims["sequence"] * (dims["in_features"] + dims["out_features"]) + 2 * dims["keys"] * dims["in_features"]
    return 2 * rows * inner


def attention_core_flops(operator: Operator) -> int:
    """Scores and the weighted sum of values: two products of queries x keys x heads x head."""
    dims = operator.dims
    return 4 * dims["sequence"] * dims["keys"] * dims["heads"] * dims["head"]


def _volume(operator: Operator) -> int:
    return prod(operator.dims.values())


def _contraction(operator: Operator) -> int:
    return 2 * _volume(operator)


def _attention(operator: Operator) -> int:
    return attention_projection_flops(operator) + attention_core_flops(operator)


def _normalisation(operator: Operator) -> int:
    """Subtract the mean, divide, scale, shift."""
    return 4 * _volume(operator)


def _lstm(operator: Operator) -> int:
    """Four gates, each the product of a weight with the input and one with the last output."""
    return 8 * _contraction(operator)


def _exponentials(operator: Operator) -> int:
    """An exponential (three), and one more, for each element."""
    return 4 * _volume(operator)


def _positions(operator: Operator) -> int:
    """One addition an element; where tokens are put in front, `added` counts them and is no axis of the result."""
    return operator.dims["sequence"] * operator.dims["features"]


def _layer(operator: Operator) -> int:
    """All products of a layer, the core of its attention and its scan; norms and residuals are left out."""
    shape = layer_shape(operator)
    scan = shape.mamba.scan_flops(shape.sequence) if shape.mamba else 0.0
    return int(sum(product.flops for product in shape.products) + shape.core_flops + scan)


def _none(operator: Operator) -> int:
    del operator
    return 0


FLOPS: dict[str, Callable[[Operator], int]] = {
    "add": _volume,
    "attention": _attention,
    "average_pool": _volume,
    "batch_norm": _normalisation,
    "concat": _none,
    "conv2d": _contraction,
    "cross_entropy": _exponentials,
    "dropout": _volume,
    "embedding": _none,
    "flatten": _none,
    "layer_norm": _normalisation,
    "linear": _contraction,
    "lstm": _lstm,
    "matmul": _contraction,
    "max_pool": _volume,
    "positions": _positions,
    "relu": _volume,
    "position_embedding": _none,
    "similarity": _contraction,
    **dict.fromkeys(
        ("bias", "div", "erf", "gain", "mean", "mul", "scale", "sqrt", "square", "sub", "tanh"), _volume
    ),
    **dict.fromkeys(("copy", "nll", "permute", "view"), _none),
    "softmax": _exponentials,
    "stack": _none,
    "unstack": _none,
    "token_norm": _normalisation,
    **dict.fromkeys(LAYERS, _layer),
    "vocab_embedding": _none,
    "vocab_head": _contraction,
}
"""Kind to its rule. Attention needs the dims sequence, keys, heads, head, in_features and out_features, positions
sequence and features; every other kind multiplies all of its dims (a convolution's `in_channels` are those of one
group)."""


def forward_flops(operator: Operator) -> int:
    """FLOP of one forward pass for one sample. Raises PipebenchError for a kind without a rule."""
    rule = FLOPS.get(operator.kind)
    if rule is None:
        raise PipebenchError(
            f"operator {operator.name!r}: no FLOP rule for kind {operator.kind!r}", nearest(operator.kind, FLOPS)
        )
    try:
        return rule(operator)
    except KeyError as missing:
        raise PipebenchError(
            f"operator {operator.name!r} of kind {operator.kind!r} lacks the dim {missing.args[0]!r}"
        ) from None


def graph_flops(graph: OperatorGraph) -> int:
    """FLOP of one forward pass of all operators for one sample."""
    return sum(forward_flops(operator) for operator in graph.operators)
