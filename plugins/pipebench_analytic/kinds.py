"""What the profiler knows of each operator kind: memory traffic and what the backward reads.

Traffic is counted in passes over an operator's inputs and outputs, as an unfused implementation makes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.graph import Operator

INDEX_BYTES = 8
STATISTIC_BYTES = 4


@dataclass(frozen=True, slots=True)
class Passes:
    """How often a kernel goes over all inputs and over all outputs (or their gradients, which have their size)."""

    inputs: float
    outputs: float


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    contraction: limited by FLOP as well, backward in an input-gradient and a weight-gradient kernel, each like
    the forward. forward, backward: passes; None: no kernel runs (a view). reads_weights: kernels pass over all
    weights once. reads_inputs, reads_output: what the backward reads. extra_bytes(operator, element bytes): what
    the forward keeps besides, for one sample.
    """

    contraction: bool = False
    forward: Passes | None = None
    backward: Passes | None = None
    reads_weights: bool = True
    reads_inputs: bool = False
    reads_output: bool = False
    extra_bytes: Callable[[Operator, int], float] | None = None


def attention_internal_elements(operator: Operator) -> tuple[int, int]:
    """Elements of query, key, value and context together, and of the scores, for one sample."""
    dims = operator.dims
    inner = dims["heads"] * dims["head"]
    scores = dims["heads"] * dims["sequence"] * dims["keys"]
    return 2 * inner * (dims["sequence"] + dims["keys"]), scores


def _attention(operator: Operator, element_bytes: int) -> float:
    """Query, key, value, context and the softmax of the scores."""
    return float(element_bytes * sum(attention_internal_elements(operator)))


def _max_pool(operator: Operator, element_bytes: int) -> float:
    """The index of each largest value."""
    del element_bytes
    return float(INDEX_BYTES * prod(operator.dims[dim] for dim in ("channels", "height", "width")))


def _dropout(operator: Operator, element_bytes: int) -> float:
    """Which features are kept, a byte each."""
    del element_bytes
    return float(prod(operator.dims.values()))


def _layer_norm(operator: Operator, element_bytes: int) -> float:
    """Mean and reciprocal deviation of each token."""
    del element_bytes
    return float(2 * STATISTIC_BYTES * operator.dims["sequence"])


def _lstm(operator: Operator, element_bytes: int) -> float:
    """Four gates, the state and the output of every cell."""
    dims = operator.dims
    return float(6 * element_bytes * dims["layers"] * dims["sequence"] * dims["units"])


KINDS: dict[str, Kind] = {
    # The gradients of the two uses of a forked activation are added where the fork's branches meet again.
    "add": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "attention": Kind(contraction=True, reads_inputs=True, extra_bytes=_attention),
    "average_pool": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    # Statistics first, then normalise; backward: two sums over input and gradient, then the input gradient.
    "batch_norm": Kind(forward=Passes(2, 1), backward=Passes(3, 2), reads_inputs=True),
    "concat": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "conv2d": Kind(contraction=True, reads_inputs=True),
    # The probabilities, as large as the logits, are kept; the gradient is made in one pass over them.
    "cross_entropy": Kind(forward=Passes(2, 0), backward=Passes(1, 1), reads_output=True),
    "dropout": Kind(forward=Passes(1, 1), backward=Passes(1, 1), extra_bytes=_dropout),
    # Only the entries that are looked up are read, and only their gradients written.
    "embedding": Kind(forward=Passes(1, 2), backward=Passes(1, 2), reads_weights=False, reads_inputs=True),
    "flatten": Kind(),
    "layer_norm": Kind(forward=Passes(1, 1), backward=Passes(3, 2), reads_inputs=True, extra_bytes=_layer_norm),
    "linear": Kind(contraction=True, reads_inputs=True),
    "lstm": Kind(contraction=True, reads_inputs=True, extra_bytes=_lstm),
    "matmul": Kind(contraction=True, reads_inputs=True),
    "max_pool": Kind(forward=Passes(1, 1), backward=Passes(1, 1), reads_inputs=True, extra_bytes=_max_pool),
    "positions": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    # In place: the output, which the next operator keeps as its input, tells where the gradient passes.
    "relu": Kind(forward=Passes(1, 1), backward=Passes(1, 2), reads_output=True),
    # The tasks of a traced program (RaNNC section III-A), each a kernel of its own.
    "bias": Kind(forward=Passes(1, 1), backward=Passes(0, 1)),
    "copy": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "div": Kind(forward=Passes(1, 1), backward=Passes(2, 2), reads_inputs=True),
    "erf": Kind(forward=Passes(1, 1), backward=Passes(2, 1), reads_inputs=True),
    "gain": Kind(forward=Passes(1, 1), backward=Passes(2, 1), reads_inputs=True),
    "mean": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "mul": Kind(forward=Passes(1, 1), backward=Passes(2, 2), reads_inputs=True),
    # One element of each row is read; its gradient is written among zeros.
    "nll": Kind(forward=Passes(0, 1), backward=Passes(1, 1)),
    "permute": Kind(),
    "scale": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "softmax": Kind(forward=Passes(1, 1), backward=Passes(1, 2), reads_output=True),
    "sqrt": Kind(forward=Passes(1, 1), backward=Passes(1, 2), reads_output=True),
    "square": Kind(forward=Passes(1, 1), backward=Passes(2, 1), reads_inputs=True),
    "sub": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "tanh": Kind(forward=Passes(1, 1), backward=Passes(1, 2), reads_output=True),
    "view": Kind(),
    "similarity": Kind(forward=Passes(1, 1), backward=Passes(2, 1), reads_inputs=True),
    "stack": Kind(forward=Passes(1, 1), backward=Passes(1, 1)),
    "unstack": Kind(),
    # Of language models only what the backward reads is told here; `language` prices them.
    "position_embedding": Kind(),
    "token_norm": Kind(reads_inputs=True),
    "transformer_layer": Kind(contraction=True, reads_inputs=True),
    "vocab_embedding": Kind(reads_inputs=True),
    "vocab_head": Kind(contraction=True, reads_inputs=True),
}


def kind_of(operator: Operator) -> Kind:
    """The kind of an operator. Raises PipebenchError with the kinds that the profiler knows."""
    if operator.kind not in KINDS:
        raise PipebenchError(
            f"operator {operator.name!r}: the analytic profiler does not know kind {operator.kind!r}",
            nearest(operator.kind, KINDS),
        )
    return KINDS[operator.kind]
