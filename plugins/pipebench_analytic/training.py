"""What the operators of a language model cost in training under a framework.

Each is some kernels (`layer_kernels`): plain, split over devices, and with a part of its forward run again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pipebench.costs.shapes.kept import checkpoint_bytes, saved_bytes
from pipebench.costs.shapes.modules import repeats
from pipebench.costs.shapes.transformer import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    FURTHER,
    HEAD,
    LAYERS,
    MAMBA,
    NORM,
    OVERLAPPED,
    SEQUENCE_SPLIT,
    WIDE_BYTES,
    layer_shape,
)
from pipebench.domain.framework import Attention, Checkpoints, Framework, RecomputeModule
from pipebench.domain.graph import Operator
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.recomputation import Repeated
from pipebench_analytic.alternatives import alternative_id
from pipebench_analytic.elementwise import ELEMENTWISE
from pipebench_analytic.layer_kernels import CORE, LayerKernels
from pipebench_analytic.passes import OperatorPasses, Pass
from pipebench_analytic.roofline import significant
from pipebench_analytic.speeds import Speeds

LOSS_KERNELS = 8, 5
"""Kernels of the loss, forward and backward (megatron/core/tensor_parallel/cross_entropy.py)."""


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
        narrow_bytes: float | None = None,
        ranks: int = 1,
        context: int = 1,
        modules: tuple[RecomputeModule, ...] = (),
    ) -> None:
        """narrow_bytes: of an element of the layers' products, where they run in another precision. ranks: that
        share out the experts of a layer. context: ranks that share out sequences. modules: that selective
        checkpointing runs again in place of attention's core.
        """
        self._ranks, self._context, self._modules = ranks, context, modules
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

        selective: also as the framework's selective checkpointing runs it; it is where modules are named.
        """
        plain = self._seconds(operator, weight_bytes, 1, "none")
        selective = selective or bool(self._modules)
        kinds: tuple[Repeated, ...] = ("none", "full", "selective") if selective else ("none", "full")
        if operator.kind not in LAYERS or self._framework.selective not in self._checkpoints(operator):
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
            saved_bytes_per_sample=significant(self._saved_bytes(operator, weight_bytes, 1)),
            workspace_bytes=workspace_bytes if operator.kind in (*LAYERS, HEAD) else 0,
            alternatives=self._offered[key],
        )

    def _alternative(self, operator: Operator, weight_bytes: int, ways: int, again: Repeated) -> Alternative:
        took = self._seconds(operator, weight_bytes, ways, again)
        saved = self._saved_bytes(operator, weight_bytes, ways)
        kept = self._kept_bytes(operator, weight_bytes, ways, again)
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
            expert_bytes=self._expert_bytes(operator),
        )

    def _checkpoints(self, operator: Operator) -> tuple[Checkpoints, ...]:
        """Kinds of selective checkpointing that are known of a layer."""
        whole = operator.kind not in (ATTENTION, FEED_FORWARD, MAMBA) and not self._shares(operator)
        return ("core", "products") if whole else ("core",)

    def _shares(self, operator: Operator) -> bool:
        """Whether ranks share out the experts of an operator."""
        return self._ranks > 1 and operator.kind in LAYERS and layer_shape(operator).experts > 1

    def _expert_bytes(self, operator: Operator) -> int:
        """Of the experts of an operator that a rank holds where ranks share them out."""
        if not self._shares(operator):
            return 0
        return self._element_bytes * layer_shape(operator).expert_weights // self._ranks

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
        if again == "full" and operator.kind in LAYERS:
            forward += Pass(host_s=self._framework.checkpoint_s)
            repeated = passes.forward + Pass(host_s=self._framework.rerun_s)
        if again == "selective" and (self._modules or self._attention != "selective"):
            forward, repeated = self._checkpointed(operator, forward, passes.selective)
        backward = repeated + passes.backward
        backward_s = backward.seconds(speeds, ways)
        return (
            forward.seconds(speeds, ways),
            backward_s,
            min(backward_s, passes.weights.seconds(speeds, ways)),
            forward.collective_s(speeds, ways),
            backward.collective_s(speeds, ways),
        )

    def _checkpointed(self, operator: Operator, forward: Pass, repeated: Pass) -> tuple[Pass, Pass]:
        """Forward and what runs again under selective checkpointing.

        Each operator may pass through Python. A module that is named keeps and sets random states as a layer does.
        """
        more = (self._framework.selective_launches - 1) * self._speeds.launch_s
        named = len(repeats(layer_shape(operator), self._modules))
        kept_s, set_s = named * self._framework.checkpoint_s, named * self._framework.rerun_s
        return (
            forward + Pass(host_s=more * len(forward.kernels) + kept_s),
            repeated + Pass(host_s=more * len(repeated.kernels) + set_s),
        )

    def _passes(self, operator: Operator, weight_bytes: int, samples: int, ways: int) -> OperatorPasses:
        if operator.kind in LAYERS:
            made = LayerKernels(
                layer_shape(operator, self._context),
                samples,
                ways,
                self._speeds,
                self._framework,
                self._attention,
                self._element_bytes,
                self._ranks,
                self._modules or CORE,
            )
            passes = made.passes()
            return self._looked_up(operator, samples, ways, passes) if operator.kind == FURTHER else passes
        return self._edge(operator, weight_bytes, samples, ways)

    def _looked_up(self, operator: Operator, samples: int, ways: int, passes: OperatorPasses) -> OperatorPasses:
        """With the lookup of the tokens that a further layer joins. The layer's own reductions count it."""
        whole = float(self._element_bytes * samples * operator.dims["sequence"] * operator.dims["hidden"])
        whole /= ways if self._framework.sequence_parallel else 1
        lookup, dense = self._lookup(whole, self._table_bytes(operator, ways))
        return replace(passes, forward=passes.forward + lookup, weights=passes.weights + dense)

    def _lookup(self, whole: float, held: int) -> tuple[Pass, Pass]:
        """Rows are read and written; the gradient of a table is as large as the table: it is cleared, filled and
        added to the last ones.
        """
        stream = self._speeds.stream_s
        return (
            Pass([stream(2 * whole), stream(2 * whole)]),
            Pass([stream(held), stream(3 * whole), stream(3 * held)]),
        )

    def _table_bytes(self, operator: Operator, ways: int) -> int:
        """Of the embedding's table that a further layer reads as well."""
        if operator.kind != FURTHER:
            return 0
        return -(-self._element_bytes * operator.dims["entries"] * operator.dims["hidden"] // ways)

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
            accumulated_s = stream(self._framework.accumulate_bytes * vocab * hidden)
            times = operator.dims.get("predictions", 1)  # tokens that are predicted of each
            return OperatorPasses(
                Pass([product_s(tokens, vocab, hidden), *forward_loss] * times, reduces * times),
                Pass([*backward_loss, product_s(tokens, hidden, vocab)] * times, reduces * times),
                Pass([product_s(vocab, hidden, tokens), accumulated_s] * times),
            )
        if operator.kind == NORM:
            matrix = weight_bytes / size > 2 * hidden
            product = [self._speeds.product_s(tokens, hidden, hidden)] if matrix else []
            kernels = ELEMENTWISE[self._framework.elementwise](size, stream)
            rms = _scales_only(operator, weight_bytes, size)
            return OperatorPasses(
                Pass([*product, *kernels.norm(whole / size, rms)]),
                Pass([*product, *kernels.norm_backward(whole / size, rms)]),
                Pass(product),
            )
        held = self._held_bytes(operator, weight_bytes, ways)
        lookup, dense = self._lookup(whole, held)
        return OperatorPasses(lookup + Pass([], reduces if operator.kind == EMBEDDING else []), Pass(), dense)

    def _held_bytes(self, operator: Operator, weight_bytes: int, ways: int) -> int:
        if operator.kind in LAYERS:
            ranks = self._ranks if self._shares(operator) else 1
            own = self._element_bytes * layer_shape(operator).weights(ways, ranks)
            return own + self._table_bytes(operator, ways)
        return -(-weight_bytes // ways) if operator.kind in (EMBEDDING, HEAD) else weight_bytes

    def _saved_bytes(self, operator: Operator, weight_bytes: int, ways: int) -> float:
        """What the forward keeps for the backward of one sample."""
        size = self._element_bytes
        if operator.kind in LAYERS:
            return self._layer_bytes(operator, ways)
        tokens, hidden = operator.dims["sequence"], operator.dims["hidden"]
        whole = float(size * tokens * hidden) / (ways if self._framework.sequence_parallel else 1)
        if operator.kind == HEAD:
            times = operator.dims.get("predictions", 1)
            return times * self._head_bytes(tokens, hidden, operator.dims["vocab"], ways)
        if operator.kind != NORM:
            return 0.0
        wide = self._framework.elementwise == "eager" and _scales_only(operator, weight_bytes, size)
        return whole + (WIDE_BYTES * whole / size if wide else 0.0)

    def _head_bytes(self, tokens: int, hidden: int, vocab: int, ways: int) -> float:
        """What the head and its loss hold for one sample."""
        framework = self._framework
        split = framework.sequence_parallel and not framework.keeps_gathered
        read = self._element_bytes * tokens * hidden / (ways if split else 1)
        each = framework.logit_bytes if ways == 1 else framework.split_logit_bytes
        return read + each * tokens * -(-vocab // ways)

    def _layer_bytes(self, operator: Operator, ways: int, again: tuple[RecomputeModule, ...] = ()) -> float:
        split = self._framework.sequence_parallel
        return saved_bytes(
            layer_shape(operator, self._context),
            self._element_bytes,
            ways,
            scores=self._attention == "unfused" and "core_attn" not in again,
            sequence_split=split,
            keeps_gathered=self._framework.keeps_gathered,
            narrow_bytes=self._narrow_bytes,
            elementwise=self._framework.elementwise,
            repeats_keys=self._framework.repeats_keys,
            dispatches=self._shares(operator),
            again=again,
        )

    def _kept_bytes(self, operator: Operator, weight_bytes: int, ways: int, again: Repeated) -> float:
        """The same where the forward runs again: a layer's input, or what selective checkpointing keeps."""
        saved = self._saved_bytes(operator, weight_bytes, ways)
        if operator.kind not in LAYERS or again == "none":
            return saved
        shape, split = layer_shape(operator), self._framework.sequence_parallel
        if again == "selective" and self._framework.selective == "core":
            return self._layer_bytes(operator, ways, self._modules or CORE)
        if again == "selective":
            return checkpoint_bytes(
                shape, self._element_bytes, ways, sequence_split=split, elementwise=self._framework.elementwise
            )
        whole = float(self._element_bytes * shape.sequence * shape.hidden)
        return min(saved, whole / (ways if split else 1))


def _scales_only(norm: Operator, weight_bytes: int, size: int) -> bool:
    """Whether a norm has one vector of weights and does not subtract the mean."""
    return weight_bytes <= size * norm.dims["hidden"] and not norm.attributes.get("centred")


def _where_any(seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Seconds, or none where all are 0."""
    return seconds if any(seconds) else ()


def _likeness(operator: Operator, weight_bytes: int) -> tuple[object, ...]:
    """Operators that are equal in this cost the same."""
    return (operator.kind, *sorted(operator.dims.items()), *sorted(operator.attributes.items()), weight_bytes)
