"""What the operators of a language model cost in training, kernel by kernel, under a framework.

Each part is a list of kernels in the order in which eager code launches them. A device runs them one after the
other, at measured speeds; the host launches them one after the other, and where that takes longer it is the time.
Products: Megatron-LM's split over heads and over the feed-forward width (Shoeybi et al. 2019, section 3). Between
them norms, biases, dropouts and residuals stream through memory, split over the sequence where the framework has
sequence parallelism (Korthikanti et al. 2022, section 4.2.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pipebench.costs.transformer import (
    EMBEDDING,
    HEAD,
    LAYER,
    NORM,
    OVERLAPPED,
    SEQUENCE_SPLIT,
    SPLIT_BY_INPUT,
    LayerShape,
    Product,
    layer_shape,
)
from pipebench.domain.framework import Attention, Framework
from pipebench.domain.graph import Operator
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.recomputation import Repeated
from pipebench_analytic.alternatives import alternative_id
from pipebench_analytic.roofline import significant
from pipebench_analytic.speeds import Speeds

LOSS_KERNELS = 8, 5
"""Kernels of the loss, forward and backward (megatron/core/tensor_parallel/cross_entropy.py)."""
FLASH_BACKWARD = 2.5
"""Flash attention's backward has five products for the forward's two."""
HEAD_TILE = 64
"""Products over a head's features work on as many features at a time."""
SOFTMAX_BATCH, LONGEST_SOFTMAX = 4, 2048
"""Megatron-LM's fused softmax takes sequences up to that length, and a number of heads times samples that is a
multiple of four (megatron/model/fused_softmax.py); else softmax is computed in six kernels."""
LAUNCHES_PER_REDUCE = 2


@dataclass
class Pass:
    """Kernels of one direction of an operator on one device, and what it exchanges with the other ranks.

    kernels: seconds of each. reduces: bytes of each all-reduce. host_s: of the host, besides launches.
    """

    kernels: list[float] = field(default_factory=list)
    reduces: list[float] = field(default_factory=list)
    host_s: float = 0.0

    def seconds(self, speeds: Speeds, ways: int) -> float:
        """What is longer: the device's work with its all-reduces, or the host's launches."""
        work_s = sum(self.kernels)
        device_s = work_s + self._waited_s(speeds, ways, work_s)
        launches = len(self.kernels) + LAUNCHES_PER_REDUCE * len(self.reduces)
        apart_s = len(self.reduces) * (ways - 1) * speeds.skew_s
        return max(device_s, launches * speeds.launch_s + self.host_s) + apart_s

    def _waited_s(self, speeds: Speeds, ways: int, work_s: float) -> float:
        """What of the all-reduces the device waits for.

        Where products run beside them, each rank's part is worked on while the next one comes: the first part of
        all is waited for, and what takes longer than the work (Wang et al. 2023, Overlap Communication with
        Dependent Computation via Decomposition, section 3).
        """
        sent_s = sum(speeds.all_reduce_s(size, ways) for size in self.reduces)
        return max(sent_s / ways, sent_s - work_s) if speeds.overlaps else sent_s

    def collective_s(self, speeds: Speeds, ways: int) -> float:
        """What the all-reduces add to `seconds`; the host's launches may hide a part of them."""
        return self.seconds(speeds, ways) - Pass(self.kernels, [], self.host_s).seconds(speeds, ways)

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(self.kernels + other.kernels, self.reduces + other.reduces, self.host_s + other.host_s)


@dataclass
class OperatorPasses:
    """forward; inputs and weights: the two parts of the backward; selective: of the forward, what selective
    checkpointing runs again; again: what the plain backward repeats of it.
    """

    forward: Pass
    inputs: Pass
    weights: Pass
    selective: Pass = field(default_factory=Pass)
    again: Pass = field(default_factory=Pass)

    @property
    def backward(self) -> Pass:
        """Both parts, and what is run again."""
        return self.again + self.inputs + self.weights


class _Seconds(NamedTuple):
    """Seconds at each size: forward, backward, the backward's weight part, and what collectives add to the first
    two.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    weights: tuple[float, ...]
    forward_collectives: tuple[float, ...]
    backward_collectives: tuple[float, ...]


class TrainingCosts:
    """Prices operators of a language model on one device type at some micro-batch sizes."""

    def __init__(
        self,
        speeds: Speeds,
        framework: Framework,
        attention: Attention,
        element_bytes: int,
        sizes: Sequence[int],
        narrow_bytes: int | None = None,
    ) -> None:
        """narrow_bytes: of an element of the layers' products, where they run in another precision."""
        self._narrow_bytes = narrow_bytes if framework.keeps_narrow else None
        self._speeds, self._framework, self._attention = speeds, framework, attention
        self._element_bytes, self._sizes = element_bytes, tuple(sizes)
        self._known: dict[object, _Seconds] = {}
        self._offered: dict[object, tuple[Alternative, ...]] = {}

    def costs(
        self,
        operator: Operator,
        weight_bytes: int,
        degrees: Sequence[int],
        workspace_bytes: int,
        selective: bool = False,
    ) -> OperatorCosts:
        """Costs with an alternative for each degree, plain and recomputed. weight_bytes: of the whole operator.

        selective: also as the framework's selective checkpointing runs it.
        """
        plain = self._seconds(operator, weight_bytes, 1, "none")
        kinds: tuple[Repeated, ...] = ("none", "full", "selective") if selective else ("none", "full")
        if operator.kind != LAYER:
            kinds = kinds[:2]
        key = (_likeness(operator, weight_bytes), *degrees, *kinds)
        if key not in self._offered:
            self._offered[key] = tuple(
                self._alternative(operator, weight_bytes, ways, again)
                for ways in (1, *degrees)
                for again in kinds
                if ways > 1 or again != "none"
            )
        return OperatorCosts(
            operator=operator.name,
            forward_s=plain.forward,
            backward_s=plain.backward,
            weight_gradient_s=_where_any(plain.weights),
            saved_bytes_per_sample=significant(self._saved_bytes(operator, 1)),
            workspace_bytes=workspace_bytes if operator.kind in (LAYER, HEAD) else 0,
            alternatives=self._offered[key],
        )

    def _alternative(self, operator: Operator, weight_bytes: int, ways: int, again: Repeated) -> Alternative:
        took = self._seconds(operator, weight_bytes, ways, again)
        saved = self._saved_bytes(operator, ways)
        kept = self._kept_bytes(operator, ways, again)
        split = f"tp{ways}" + (SEQUENCE_SPLIT if self._framework.sequence_parallel else "")
        split += OVERLAPPED if self._framework.tensor_overlap else ""
        reduced = self._passes(operator, weight_bytes, 1, ways).forward.reduces
        return Alternative(
            id=alternative_id(ways, split, again),
            tensor_parallel=ways,
            recompute=again != "none",
            selective=again == "selective",
            forward_s=took.forward,
            backward_s=took.backward,
            parameter_bytes=self._held_bytes(operator, weight_bytes, ways),
            saved_bytes_per_sample=significant(kept),
            collective_bytes=significant(sum(reduced)),
            transient_bytes_per_sample=significant(saved - kept),
            forward_collective_s=_where_any(took.forward_collectives),
            backward_collective_s=_where_any(took.backward_collectives),
        )

    def _seconds(self, operator: Operator, weight_bytes: int, ways: int, again: Repeated) -> "_Seconds":
        """At each size. Layers of one shape are priced once."""
        key = _likeness(operator, weight_bytes)
        if (key, ways, again) not in self._known:
            each = [self._at(operator, weight_bytes, size, ways, again) for size in self._sizes]
            columns = (tuple(map(significant, column)) for column in zip(*each, strict=True))
            self._known[key, ways, again] = _Seconds(*columns)
        return self._known[key, ways, again]

    def _at(
        self, operator: Operator, weight_bytes: int, samples: int, ways: int, again: Repeated
    ) -> tuple[float, float, float, float, float]:
        """The fields of _Seconds at one size."""
        passes, speeds = self._passes(operator, weight_bytes, samples, ways), self._speeds
        forward, repeated = passes.forward, Pass()
        if again == "full" and operator.kind == LAYER:
            forward += Pass(host_s=self._framework.checkpoint_s)
            repeated = passes.forward + Pass(host_s=self._framework.rerun_s)
        if again == "selective" and self._attention != "selective":
            repeated = passes.selective
        backward = repeated + passes.backward
        backward_s = backward.seconds(speeds, ways)
        return (
            forward.seconds(speeds, ways),
            backward_s,
            min(backward_s, passes.weights.seconds(speeds, ways)),
            forward.collective_s(speeds, ways),
            backward.collective_s(speeds, ways),
        )

    def _passes(self, operator: Operator, weight_bytes: int, samples: int, ways: int) -> OperatorPasses:
        if operator.kind == LAYER:
            made = _LayerKernels(
                layer_shape(operator),
                samples,
                ways,
                self._speeds,
                self._framework,
                self._attention,
                self._element_bytes,
            )
            return made.passes()
        return self._edge(operator, weight_bytes, samples, ways)

    def _edge(self, operator: Operator, weight_bytes: int, samples: int, ways: int) -> OperatorPasses:
        """Embedding, positions, last norm and head."""
        stream, size = self._speeds.stream_s, self._element_bytes
        tokens, hidden = samples * operator.dims["sequence"], operator.dims["hidden"]
        crossing = float(size * tokens * hidden)
        whole = crossing / (ways if self._framework.sequence_parallel else 1)
        reduces = [crossing] if ways > 1 else []
        if operator.kind == HEAD:
            vocab = -(-operator.dims["vocab"] // ways)
            product_s = self._speeds.product_s
            loss_s = stream(self._framework.loss_bytes * tokens * vocab / 2)
            forward_loss, backward_loss = ([loss_s / count] * count for count in LOSS_KERNELS)
            return OperatorPasses(
                Pass([product_s(tokens, vocab, hidden), *forward_loss], reduces),
                Pass([*backward_loss, product_s(tokens, hidden, vocab)], reduces),
                Pass(
                    [product_s(vocab, hidden, tokens), stream(self._framework.accumulate_bytes * vocab * hidden)]
                ),
            )
        if operator.kind == NORM:
            matrix = weight_bytes / size > 2 * hidden
            product = [self._speeds.product_s(tokens, hidden, hidden)] if matrix else []
            return OperatorPasses(
                Pass([*product, stream(2 * whole)]), Pass([*product, stream(3 * whole)]), Pass(product)
            )
        held = self._held_bytes(operator, weight_bytes, ways)
        # The gradient of a table is as large as the table: it is cleared, filled and added to the last ones.
        dense = Pass([stream(held), stream(3 * whole), stream(3 * held)])
        lookup = Pass([stream(2 * whole), stream(2 * whole)], reduces if operator.kind == EMBEDDING else [])
        return OperatorPasses(lookup, Pass(), dense)

    def _held_bytes(self, operator: Operator, weight_bytes: int, ways: int) -> int:
        if operator.kind == LAYER:
            return self._element_bytes * layer_shape(operator).weights(ways)
        return -(-weight_bytes // ways) if operator.kind in (EMBEDDING, HEAD) else weight_bytes

    def _saved_bytes(self, operator: Operator, ways: int) -> float:
        """What the forward keeps for the backward of one sample."""
        size = self._element_bytes
        if operator.kind == LAYER:
            return self._layer_bytes(operator, ways, scores=self._attention == "unfused")
        tokens, hidden = operator.dims["sequence"], operator.dims["hidden"]
        whole = float(size * tokens * hidden) / (ways if self._framework.sequence_parallel else 1)
        if operator.kind == HEAD:
            return self._head_bytes(tokens, hidden, operator.dims["vocab"], ways)
        return whole if operator.kind == NORM else 0.0

    def _head_bytes(self, tokens: int, hidden: int, vocab: int, ways: int) -> float:
        """What the head and its loss hold for one sample."""
        framework = self._framework
        split = framework.sequence_parallel and not framework.keeps_gathered
        read = self._element_bytes * tokens * hidden / (ways if split else 1)
        each = framework.logit_bytes if ways == 1 else framework.split_logit_bytes
        return read + each * tokens * -(-vocab // ways)

    def _layer_bytes(self, operator: Operator, ways: int, *, scores: bool) -> float:
        split = self._framework.sequence_parallel
        return layer_shape(operator).saved_bytes(
            self._element_bytes,
            ways,
            scores=scores,
            sequence_split=split,
            keeps_gathered=self._framework.keeps_gathered,
            narrow_bytes=self._narrow_bytes,
        )

    def _kept_bytes(self, operator: Operator, ways: int, again: Repeated) -> float:
        """The same where the forward runs again: a layer's input, or what selective checkpointing keeps."""
        saved = self._saved_bytes(operator, ways)
        if operator.kind != LAYER or again == "none":
            return saved
        shape, split = layer_shape(operator), self._framework.sequence_parallel
        if again == "selective" and self._framework.selective == "core":
            return self._layer_bytes(operator, ways, scores=False)
        if again == "selective":
            return shape.checkpoint_bytes(self._element_bytes, ways, sequence_split=split)
        whole = float(self._element_bytes * shape.sequence * shape.hidden)
        return min(saved, whole / (ways if split else 1))


def _where_any(seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Seconds, or none where all are 0."""
    return seconds if any(seconds) else ()


def _likeness(operator: Operator, weight_bytes: int) -> tuple[object, ...]:
    """Operators that are equal in this cost the same."""
    return (operator.kind, *sorted(operator.dims.items()), *sorted(operator.attributes.items()), weight_bytes)


@dataclass(frozen=True)
class _LayerKernels:
    """The kernels of one Transformer layer on one of `ways` devices, at a number of samples."""

    shape: LayerShape
    samples: int
    ways: int
    speeds: Speeds
    framework: Framework
    attention: Attention
    element_bytes: int

    @cached_property
    def _tokens(self) -> int:
        return self.samples * self.shape.sequence

    @cached_property
    def _whole(self) -> float:
        """Bytes of the activations between the products."""
        share = self.ways if self.framework.sequence_parallel else 1
        return self.element_bytes * self._tokens * self.shape.hidden / share

    @cached_property
    def _inner(self) -> float:
        """Bytes of one activation inside the feed-forward part."""
        return self.element_bytes * self._tokens * self.shape.active * self.shape.ffn / self.ways

    @cached_property
    def _scores(self) -> float:
        """Elements of attention's scores."""
        return self.samples * self.shape.heads / self.ways * self.shape.sequence**2

    def passes(self) -> OperatorPasses:
        """Two norms and two residuals around attention and the feed-forward part."""
        stream, mask = self.speeds.stream_s, 1 / self.element_bytes if self.shape.dropout else 0.0
        crossing = float(self.element_bytes * self._tokens * self.shape.hidden)
        reduces = [crossing, crossing] if self.ways > 1 else []
        norms = [stream(2 * self._whole)] * 2
        residuals = [stream((3 + mask) * self._whole)] * 2
        activation = [stream((self.shape.branches + 1) * self._inner)]
        forward, core = self._products("forward"), self._core_forward()
        biases = [stream(self._inner), stream(3 * self._queries), stream(self._whole), stream(self._whole)]
        back = [
            *[stream(3 * self._whole)] * 2,
            *[stream((2 + mask) * self._whole)] * 2,
            stream((2 * self.shape.branches + 1) * self._inner),
            *(biases if self.shape.bias else ()),
            *[stream(2 * self._whole)] * 2,  # gradients of residuals are added
        ]
        again = Pass(core) if self.attention == "selective" else Pass()
        return OperatorPasses(
            Pass([*norms, *forward, *core, *residuals, *activation], reduces),
            Pass([*self._core_backward(), *self._products("inputs"), *back], reduces),
            Pass([*self._products("weights"), *self._accumulations()]),
            Pass(core) if self.framework.selective == "core" else self._between(norms, residuals, activation),
            again,
        )

    def _between(self, norms: list[float], residuals: list[float], activation: list[float]) -> Pass:
        """What runs again where results of attention and of every second product are kept.

        The layer's last residual is not run again: nothing reads it. Both gathers of the sequence are, which
        together are an all-reduce.
        """
        products = [each for linear in self.shape.linears[1::2] for each in self._product(linear, "forward")]
        rotated = [self.speeds.stream_s(2 * self._queries)]
        crossing = float(self.element_bytes * self._tokens * self.shape.hidden)
        return Pass(
            [*norms, *rotated, *products, *residuals[:1], *activation], [crossing] if self.ways > 1 else []
        )

    @cached_property
    def _queries(self) -> float:
        return self.element_bytes * self._tokens * self.shape.queries / self.ways

    def _products(self, part: str) -> list[float]:
        return [seconds for each in self.shape.products for seconds in self._product(each, part)]

    def _product(self, each: Product, part: str) -> list[float]:
        """Of each copy of a product."""
        rows = max(1, round(self.samples * each.rows / each.copies))
        share = self.ways if each.split else 1
        by_input = each.name in SPLIT_BY_INPUT
        inner = each.inner // share if by_input else each.inner
        outer = each.outer if by_input else each.outer // share
        m, n, k = {
            "forward": (rows, outer, inner),
            "inputs": (rows, inner, outer),
            "weights": (inner, outer, rows),
        }[part]
        return [self.speeds.layer_product_s(m, n, k)] * each.copies

    def _accumulations(self) -> list[float]:
        """Each matrix' gradient is added to those of the micro-batches before."""
        each = [product.weights / (self.ways if product.split else 1) for product in self.shape.products]
        return [self.speeds.stream_s(self.framework.accumulate_bytes * elements) for elements in each]

    def _core_forward(self) -> list[float]:
        """Scores and the weighted sum of values: fused, or as eager kernels."""
        shape, stream = self.shape, self.speeds.stream_s
        copies = [stream(2 * self._queries), stream(2 * self._queries)]
        if self.attention == "flash":
            return [*copies[:1], self._fused_s()]
        size = self.element_bytes
        drop = [stream((2 * size + 1) * self._scores)] if shape.dropout else []
        return [*copies, self._batched(), *self._softmax(2 * size), *drop, self._batched()]

    def _core_backward(self) -> list[float]:
        shape, stream, size = self.shape, self.speeds.stream_s, self.element_bytes
        copies = [stream(3 * self._queries), stream(2 * self._queries)]
        if self.attention == "flash":
            return [*copies[:1], FLASH_BACKWARD * self._fused_s()]
        drop = [stream((2 * size + 1) * self._scores)] if shape.dropout else []
        return [*copies, *[self._batched()] * 4, *self._softmax(3 * size), *drop]

    def _fused_s(self) -> float:
        """The forward of fused attention."""
        shape, ways = self.shape, self.ways
        return self.speeds.attention_s(
            self.samples, shape.sequence, shape.heads / ways, shape.kv_heads / ways, shape.head, shape.causal
        )

    def _batched(self) -> float:
        """One product of each head: scores are written or read once."""
        shape = self.shape
        padded = -(-shape.head // HEAD_TILE) * HEAD_TILE
        return self.speeds.batched_product_s(
            2 * self._scores * padded, self.element_bytes * self._scores + 2 * self._queries
        )

    def _softmax(self, bytes_each: float) -> list[float]:
        shape, stream = self.shape, self.speeds.stream_s
        heads = self.samples * shape.heads // self.ways
        if shape.sequence <= LONGEST_SOFTMAX and shape.sequence % 4 == 0 and heads % SOFTMAX_BATCH == 0:
            return [stream(bytes_each * self._scores)]
        size = self.element_bytes
        passes = (size + 4, 8, 2 * size + 1, 8, bytes_each, 4 + size)  # to fp32, scale, mask, softmax, back
        return [stream(each * self._scores) for each in passes]
