"""What the profiler knows of each operator kind: memory traffic, and what the forward keeps for the backward."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from pipebench.costs.shapes.transformer import LAYERS
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.graph import Operator, OperatorGraph

INDEX_BYTES = 8
STATISTIC_BYTES = 4


@dataclass(frozen=True, slots=True)
class MemoryPasses:
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
    forward: MemoryPasses | None = None
    backward: MemoryPasses | None = None
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
    "add": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "attention": Kind(contraction=True, reads_inputs=True, extra_bytes=_attention),
    "average_pool": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    # Statistics first, then normalise; backward: two sums over input and gradient, then the input gradient.
    "batch_norm": Kind(forward=MemoryPasses(2, 1), backward=MemoryPasses(3, 2), reads_inputs=True),
    "concat": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "conv2d": Kind(contraction=True, reads_inputs=True),
    # The probabilities, as large as the logits, are kept; the gradient is made in one pass over them.
    "cross_entropy": Kind(forward=MemoryPasses(2, 0), backward=MemoryPasses(1, 1), reads_output=True),
    "dropout": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1), extra_bytes=_dropout),
    # Only the entries that are looked up are read, and only their gradients written.
    "embedding": Kind(
        forward=MemoryPasses(1, 2), backward=MemoryPasses(1, 2), reads_weights=False, reads_inputs=True
    ),
    "flatten": Kind(),
    "layer_norm": Kind(
        forward=MemoryPasses(1, 1), backward=MemoryPasses(3, 2), reads_inputs=True, extra_bytes=_layer_norm
    ),
    "linear": Kind(contraction=True, reads_inputs=True),
    "lstm": Kind(contraction=True, reads_inputs=True, extra_bytes=_lstm),
    "matmul": Kind(contraction=True, reads_inputs=True),
    "max_pool": Kind(
        forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1), reads_inputs=True, extra_bytes=_max_pool
    ),
    "positions": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    # In place: the output, which the next operator keeps as its input, tells where the gradient passes.
    "relu": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 2), reads_output=True),
    # The tasks of a traced program (RaNNC section III-A), each a kernel of its own.
    "bias": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(0, 1)),
    "copy": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "div": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 2), reads_inputs=True),
    "erf": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 1), reads_inputs=True),
    "gain": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 1), reads_inputs=True),
    "mean": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "mul": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 2), reads_inputs=True),
    # One element of each row is read; its gradient is written among zeros.
    "nll": Kind(forward=MemoryPasses(0, 1), backward=MemoryPasses(1, 1)),
    "permute": Kind(),
    "scale": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "softmax": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 2), reads_output=True),
    "sqrt": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 2), reads_output=True),
    "square": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 1), reads_inputs=True),
    "sub": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "tanh": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 2), reads_output=True),
    "view": Kind(),
    "similarity": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(2, 1), reads_inputs=True),
    "stack": Kind(forward=MemoryPasses(1, 1), backward=MemoryPasses(1, 1)),
    "unstack": Kind(),
    # Of language models only what the backward reads is told here; `language` prices them.
    "position_embedding": Kind(),
    "token_norm": Kind(reads_inputs=True),
    **dict.fromkeys(LAYERS, Kind(contraction=True, reads_inputs=True)),
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


SAVED_BYTES_DEFINITION = (
    "tensors that the backward reads, each charged once: to the first operator that reads it and needs it for its "
    "backward, else to its producer where that needs it; besides them attention's query, key, value, context and "
    "softmax, indices of max pooling, statistics of layer norms"
)


@dataclass(frozen=True, slots=True)
class SavedBytes:
    """Bytes for one sample. inputs: tensors it reads. own: its output or internal results."""

    inputs: float
    own: float


def saved_bytes(graph: OperatorGraph, element_bytes: int) -> tuple[SavedBytes, ...]:
    """What each operator is charged, in the order of the graph."""
    inputs = [0.0] * len(graph.operators)
    own = [0.0] * len(graph.operators)
    kinds = [kind_of(operator) for operator in graph.operators]
    turn = {operator: turn for turn, operator in enumerate(graph.topological)}
    for tensor, described in enumerate(graph.tensors):
        needing = [reader for reader in graph.consumers[tensor] if kinds[reader].reads_inputs]
        producer = graph.producers[tensor]
        if needing:
            inputs[min(needing, key=turn.__getitem__)] += described.forward_bytes_per_sample
        elif producer >= 0 and kinds[producer].reads_output:
            own[producer] += described.forward_bytes_per_sample
    for position, (operator, kind) in enumerate(zip(graph.operators, kinds, strict=True)):
        if kind.extra_bytes is not None:
            own[position] += kind.extra_bytes(operator, element_bytes)
    return tuple(map(SavedBytes, inputs, own))
