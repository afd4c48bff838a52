"""The kernels of one layer, in the order in which eager code launches them, and how long they take.

A device runs them one after the other, at measured speeds; the host launches them one after the other, and where
that takes longer it is the time. Products: Megatron-LM's split over heads and over the feed-forward width (Shoeybi
et al. 2019, section 3). Between them norms, biases, dropouts and residuals stream through memory, split over the
sequence where the framework has sequence parallelism (Korthikanti et al. 2022, section 4.2.2).
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from pipebench.costs.shapes.modules import norms_apart, repeats
from pipebench.costs.shapes.products import SPLIT_BY_INPUT, Product
from pipebench.costs.shapes.transformer import LayerShape
from pipebench.domain.framework import Attention, Framework, RecomputeModule
from pipebench_analytic.context import backward_waits_s, forward_waits_s
from pipebench_analytic.elementwise import ELEMENTWISE, Activations, ElementwiseKernels
from pipebench_analytic.part_kernels import LatentKernels, MambaKernels, SharedKernels
from pipebench_analytic.passes import OperatorPasses, Pass
from pipebench_analytic.speeds import Speeds

FLASH_BACKWARD = {2: 3.0, 3: 2.5}
"""By generation: flash attention's backward has five products for the forward's two. That of FlashAttention-2
runs at a lower rate: on an H100 it took 2.93 times the forward (docs/explanation/accuracy.md)."""
HEAD_TILE = 64
"""Products over a head's features work on as many features at a time."""
SOFTMAX_BATCH, LONGEST_SOFTMAX = 4, 2048
"""Megatron-LM's fused softmax takes sequences up to that length, and a number of heads times samples that is a
multiple of four (megatron/model/fused_softmax.py); else softmax is computed in six kernels."""
CORE: tuple[RecomputeModule, ...] = ("core_attn",)
"""What selective checkpointing runs again where no module is named."""
ROUTER_BYTES = (8, 4, 5)
"""Of each token's score for an expert, in fp32: softmax reads and writes it; the choice of the largest reads it; a
table of probabilities and one of choices are written (Megatron-LM, moe_utils.py)."""


@dataclass(frozen=True)
class LayerKernels:
    """The kernels of one layer on one of `ways` devices, at a number of samples."""

    shape: LayerShape
    samples: int
    ways: int
    speeds: Speeds
    framework: Framework
    attention: Attention
    element_bytes: int
    ranks: int = 1
    modules: tuple[RecomputeModule, ...] = CORE

    @cached_property
    def _shared(self) -> bool:
        """Whether ranks share out the experts of this layer."""
        return self.ranks > 1 and self.shape.experts > 1

    @cached_property
    def _copies(self) -> float:
        """Bytes of the tokens of one device, a copy for each expert that a token passes."""
        return self.element_bytes * self._tokens * self.shape.active * self.shape.hidden / self.ways

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
        return self.samples * self.shape.heads / self.ways * (self.shape.sequence * self.shape.whole_sequence)

    @cached_property
    def _between(self) -> ElementwiseKernels:
        """What runs between the products."""
        return ELEMENTWISE[self.framework.elementwise](self.element_bytes, self.speeds.stream_s)

    @cached_property
    def _activations(self) -> Activations:
        shape, size = self.shape, self.element_bytes
        gathered = float(self._tokens * shape.hidden)
        return Activations(
            hidden=self._whole / size,
            gathered=gathered,
            routed=gathered * shape.active,
            queries=self._queries / size,
            keys=self._tokens * shape.keys / self.ways,
            inner=self._inner / size,
            branches=shape.branches,
            rms=shape.rms,
            mask=1 / size if shape.dropout else 0.0,
            repeats_keys=self.framework.repeats_keys and shape.keys < shape.queries,
            parts=shape.parts,
        )

    def passes(self) -> OperatorPasses:
        """Norms and a residual around each part."""
        between, layer = self._between, self._activations
        # Where ranks share out experts each works on its own part of the sequence: attention alone is split.
        each_token = self.shape.crossings(shared=self._shared) if self.ways > 1 else ()
        reduces = [float(self.element_bytes * self._tokens * width) for width in each_token]
        exchanges = self._exchanges()
        forward, core = self._products("forward"), self._core_forward()
        back = [
            *between.norm_backward(layer.hidden, layer.rms) * self.shape.norm_count,
            *(each for elements in self._normed_heads for each in between.norm_backward(elements, layer.rms)),
            *between.residual_backward(layer) * self.shape.parts,
            *(between.activation_backward(layer) if self.shape.ffn else ()),
            *self._bias_gradients(),
            *between.sums(layer),
            *self._latent.backward(),
            *self._beside.backward(),
            *self._mamba.backward(),
        ]
        norms = [*between.norm(layer.hidden, layer.rms) * self.shape.norm_count, *self._head_norms]
        residuals = between.residual(layer) * self.shape.parts
        again = Pass(core) if self.attention == "selective" else Pass()
        return OperatorPasses(
            Pass(
                [
                    *norms,
                    *forward,
                    *core,
                    *residuals,
                    *(between.activation(layer) if self.shape.ffn else ()),
                    *self._routing(forward=True),
                    *self._latent.forward(),
                    *self._beside.forward(),
                    *self._mamba.forward(),
                ],
                reduces,
                exchanges=[*exchanges, *self._waits(forward=True)],
            ),
            Pass(
                [*self._core_backward(), *self._products("inputs"), *back, *self._routing(forward=False)],
                reduces,
                exchanges=[*exchanges, *self._waits(forward=False)],
            ),
            Pass([*self._products("weights"), *self._accumulations()]),
            self._modules_again() if self.framework.selective == "core" else self._between_kept(),
            again,
        )

    def _modules_again(self) -> Pass:
        """The forward of the modules that run again. `moe` has the shared expert in it."""
        between, layer, again = self._between, self._activations, repeats(self.shape, self.modules)
        tokens = float(self.element_bytes * self._tokens)
        crossing = [tokens * self.shape.hidden] if self.ways > 1 else []
        whole = "moe" in again
        shared = whole or "shared_experts" in again
        activation = between.activation(layer)
        norms = norms_apart(self.shape) if "layernorm" in again else 0
        made = Pass(between.norm(layer.hidden, layer.rms) * norms)
        if "mla_up_proj" in again:
            latent = self.shape.latent
            assert latent is not None
            up = [*self._named_products(latent.up_products), *self._latent.forward()]
            up += [] if "core_attn" in again else between.rotations(layer)
            # The products up gather what they read; what is rotated was gathered before.
            read = latent.gathered(self.shape.hidden) - latent.rotated
            made += Pass(up, [tokens * read / 2] if self.ways > 1 else [])
        if "core_attn" in again:
            made += Pass(self._core_forward(), exchanges=self._waits(forward=True))
        if "mlp" in again:
            made += Pass([*self._named_products(("up", "down")), *activation], crossing)
        if whole:
            products = self._named_products(("router", "up", "down"))
            made += Pass([*products, *activation, *self._routing(forward=True)], exchanges=self._exchanges())
        elif "moe_act" in again:
            made += Pass(activation)
        if shared and self.shape.shared_ffn:
            products = self._named_products(("shared_up", "shared_down", "shared_gate"))
            made += Pass([*products, *self._beside.forward()], crossing)
        elif whole and not self._shared:
            made += Pass(reduces=crossing)
        return made

    def _named_products(self, names: Collection[str]) -> list[float]:
        """The forward of these products of the layer."""
        named = [each for each in self.shape.products if each.name in names]
        return [seconds for each in named for seconds in self._product(each, "forward")]

    def _between_kept(self) -> Pass:
        """What runs again where results of attention and of every second product are kept.

        The layer's last residual is not run again: nothing reads it. Both gathers of the sequence are, which
        together are an all-reduce.
        """
        between, layer = self._between, self._activations
        products = [each for linear in self.shape.linears[1::2] for each in self._product(linear, "forward")]
        crossing = float(self.element_bytes * self._tokens * self.shape.hidden)
        return Pass(
            [
                *between.norm(layer.hidden, layer.rms) * self.shape.norm_count,
                *self._head_norms,
                *between.rotations(layer),
                *products,
                *between.residual(layer),
                *between.activation(layer),
                *self._latent.forward(),
                *self._beside.forward(),
            ],
            [crossing] if self.ways > 1 else [],
        )

    def _exchanges(self) -> list[float]:
        """Tokens go to the ranks of their experts and come back, forward and again backward."""
        return [self.speeds.all_to_all_s(self._copies, self.ranks)] * 2 if self._shared else []

    def _waits(self, *, forward: bool) -> list[float]:
        """For keys and values, and their gradients, of ranks that share out the sequence."""
        ranks, layer = self.shape.context_ranks, self._activations
        if ranks == 1 or not self.shape.heads:
            return []
        assert self.framework.context is not None
        values = self._tokens * self.shape.values / self.ways
        part = self.element_bytes * (2 * layer.queries if layer.repeats_keys else layer.keys + values)
        (step_s, *_) = self._fused(1.0 if forward else FLASH_BACKWARD[self.framework.flash_generation])
        waits_s = forward_waits_s if forward else backward_waits_s
        return waits_s(
            self.framework.context, ranks, step_s, lambda parts: self.speeds.hop_s(parts * part, ranks, self.ways)
        )

    def _routing(self, *, forward: bool) -> list[float]:
        """What tokens pass on their way to experts of other ranks, besides products and exchanges.

        The router's scores; tokens are copied into the order of experts and summed out of it; where a rank has
        several experts, what comes from several ranks is sorted by expert, and back. The backward does as much.
        """
        if not self._shared:
            return []
        stream, shape = self.speeds.stream_s, self.shape
        scores = self._tokens / self.ways * shape.experts
        routed = [stream(each * scores) for each in (ROUTER_BYTES if forward else ROUTER_BYTES[:1])]
        moved = [stream(self._whole + self._copies)] * 2
        return [*routed, *moved, *([stream(2 * self._copies)] * 2 if shape.experts > self.ranks else [])]

    @cached_property
    def _queries(self) -> float:
        return self.element_bytes * self._tokens * self.shape.queries / self.ways

    @cached_property
    def _context(self) -> float:
        return self.element_bytes * self._tokens * self.shape.context / self.ways

    def _moved(self, passes: float, elements: float) -> float:
        """A kernel that reads and writes so many elements so often."""
        return self.speeds.stream_s(passes * self.element_bytes * elements)

    @cached_property
    def _latent(self) -> LatentKernels:
        tokens = self._whole / (self.element_bytes * self.shape.hidden)
        return LatentKernels(self.shape, self._between, self._moved, tokens, self._activations.keys)

    @cached_property
    def _beside(self) -> SharedKernels:
        """The expert that all tokens pass."""
        inner = self._tokens * self.shape.shared_ffn / self.ways
        return SharedKernels(self.shape, self._between, self._moved, self._activations, inner)

    @cached_property
    def _mamba(self) -> MambaKernels:
        return MambaKernels(self.shape, self.speeds, self.samples, self.ways, self.element_bytes)

    @cached_property
    def _normed_heads(self) -> tuple[float, ...]:
        """Elements of queries and of keys, where their heads are normed."""
        return (self._activations.queries, self._activations.keys) if self.shape.head_norm else ()

    @cached_property
    def _head_norms(self) -> list[float]:
        return [each for elements in self._normed_heads for each in self._between.norm(elements, self.shape.rms)]

    def _bias_gradients(self) -> list[float]:
        """Sums over the tokens, one of each product that has a bias."""
        shape, stream = self.shape, self.speeds.stream_s
        made = [stream(shape.branches * self._inner)] if shape.ffn_biases else []
        if shape.state_biases:
            made.append(stream(self._queries + 2 * self.element_bytes * self._activations.keys))
        return made + [stream(self._whole)] * (shape.output_bias + shape.ffn_biases)

    def _products(self, part: str) -> list[float]:
        return [seconds for each in self.shape.products for seconds in self._product(each, part)]

    def _product(self, each: Product, part: str) -> list[float]:
        """Of each copy of a product. Where ranks share out experts each has a part of them, whole, with the tokens
        of all ranks; the router works on the tokens of one.
        """
        rows = max(1, round(self.samples * each.rows / each.copies))
        share, copies = self.ways if each.split else 1, each.copies
        if self._shared and (each.copies > 1 or not each.split):
            share, copies = 1, max(1, each.copies // self.ranks)
            ranks = self.ranks if each.copies > 1 else 1
            rows = max(1, round(self.samples * each.rows * ranks / (each.copies * self.ways)))
        elif each.by_tokens and self.framework.sequence_parallel:
            rows = max(1, round(self.samples * each.rows / self.ways))
        by_input = each.name in SPLIT_BY_INPUT
        inner = each.inner // share if by_input else each.inner
        outer = each.outer if by_input else each.outer // share
        m, n, k = {
            "forward": (rows, outer, inner),
            "inputs": (rows, inner, outer),
            "weights": (inner, outer, rows),
        }[part]
        one = self.speeds.layer_product_s(m, n, k)
        grouped = self._shared and self.framework.experts == "grouped"
        return [copies * one] if grouped else [one] * copies

    def _accumulations(self) -> list[float]:
        """Each matrix' gradient is added to those of the micro-batches before."""
        return [self.speeds.stream_s(self.framework.accumulate_bytes * each) for each in self._weights()]

    def _weights(self) -> list[float]:
        """Elements of each product on one device."""
        return [
            product.weights
            / (self.ranks if self._shared and product.copies > 1 else self.ways if product.split else 1)
            for product in self.shape.products
        ]

    def _core_forward(self) -> list[float]:
        """Scores and the weighted sum of values: fused, or as eager kernels; nothing without attention."""
        shape, stream = self.shape, self.speeds.stream_s
        if not shape.heads:
            return []
        rotations = self._between.rotations(self._activations)
        if self.attention == "flash":
            return [*rotations, *self._fused()]
        size = self.element_bytes
        drop = [stream((2 * size + 1) * self._scores)] if shape.dropout else []
        context = stream(2 * self._context)
        return [*rotations, context, self._batched(), *self._softmax(2 * size), *drop, self._batched()]

    def _core_backward(self) -> list[float]:
        shape, stream, size = self.shape, self.speeds.stream_s, self.element_bytes
        if not shape.heads:
            return []
        rotations = self._between.rotations_backward(self._activations)
        if self.attention == "flash":
            return [*rotations, *self._fused(FLASH_BACKWARD[self.framework.flash_generation])]
        drop = [stream((2 * size + 1) * self._scores)] if shape.dropout else []
        context = stream(2 * self._context)
        return [*rotations, context, *[self._batched()] * 4, *self._softmax(3 * size), *drop]

    def _fused(self, factor: float = 1.0) -> list[float]:
        """Fused attention: the forward times a factor. Of ranks that share out the sequence each does an equal
        part, in a kernel for each rank's keys, at the rate of the kernel with all of them.
        """
        shape, ways, ranks = self.shape, self.ways, self.shape.context_ranks
        whole_s = self.speeds.attention_s(
            self.samples,
            shape.whole_sequence,
            shape.heads / ways,
            shape.kv_heads / ways,
            shape.core_head,
            shape.causal,
            shape.window,
            shape.chunk,
        )
        return [factor * whole_s / ranks**2] * ranks

    def _batched(self) -> float:
        """One product of each head: scores are written or read once."""
        shape = self.shape
        padded = -(-shape.core_head // HEAD_TILE) * HEAD_TILE
        return self.speeds.batched_product_s(
            2 * self._scores * padded, self.element_bytes * self._scores + (self._queries + self._context)
        )

    def _softmax(self, bytes_each: float) -> list[float]:
        shape, stream = self.shape, self.speeds.stream_s
        heads = self.samples * shape.heads // self.ways
        if shape.sequence <= LONGEST_SOFTMAX and shape.sequence % 4 == 0 and heads % SOFTMAX_BATCH == 0:
            return [stream(bytes_each * self._scores)]
        size = self.element_bytes
        passes = (size + 4, 8, 2 * size + 1, 8, bytes_each, 4 + size)  # to fp32, scale, mask, softmax, back
        return [stream(each * self._scores) for each in passes]
