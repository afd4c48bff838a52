"""Shapes of one Transformer layer: its weights, its products and what its backward reads. No times.

Counts are of elements for one sample (weights: in all). `ways` devices share the layer as in Megatron-LM: products
are split over heads and over the feed-forward width, norms and residuals over the sequence (Shoeybi et al. 2019,
section 3; Korthikanti et al. 2022, section 4.2.2).
"""

from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Elementwise
from pipebench.domain.graph import Operator

LAYER = "transformer_layer"
EMBEDDING, POSITIONS, NORM, HEAD = "vocab_embedding", "position_embedding", "token_norm", "vocab_head"
LANGUAGE_KINDS = (EMBEDDING, POSITIONS, LAYER, NORM, HEAD)
"""Kinds of a language model's operators, in the order in which a sample meets them."""

STATISTIC_BYTES = 4
WIDE_BYTES = 4
"""Of an element inside an RMS norm or a rotation where they run eagerly, in fp32."""
LOGIT_BYTES = 4
"""The loss computes in fp32 and keeps its logits so (Korthikanti et al. 2022, section 4.3). Frameworks whose loss
keeps more at a time say so (`Framework.logit_bytes`)."""
MASK_BYTES = 1
SEQUENCE_SPLIT, OVERLAPPED = "-sp", "-overlap"
"""In the name of a way on several devices: norms and residuals are split over the sequence; products run beside
the collectives that they wait for."""
SPLIT_BY_INPUT = ("out", "down")
"""Products that tensor parallelism splits by their inputs; all others of a layer by their outputs."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product of `rows` rows: inner x outer weights, times `copies` (experts)."""

    name: str
    rows: float
    inner: int
    outer: int
    copies: int = 1
    split: bool = True

    @property
    def flops(self) -> float:
        """Of the forward, for one sample."""
        return 2.0 * self.rows * self.inner * self.outer

    @property
    def weights(self) -> int:
        """Elements of all copies."""
        return self.inner * self.outer * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """sequence: tokens a sample. branches: 2 for a gated feed-forward, else 1. experts: feed-forward parts, of
    which each token passes `active`. bias, dropout, causal: whether there is one. vectors: of weights of a norm,
    1 scales, 2 shifts as well. centred: norms subtract the mean, as those do that shift or have no weights.
    qkv_bias, out_bias, ffn_bias: where `bias` is off, these products have one: queries, keys and values; behind
    attention; of the feed-forward part. head_norm: whether each head's query and key pass a norm that scales.
    wide_head_norm: whether it has weights for all heads together, not those of one. norms: 2, one of each part; 4
    where its result is normed too; 1 where both parts read one. parallel: both parts read the layer's input.
    context_ranks: that share out the sequence, of which `sequence` is the part of one.
    """

    sequence: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    branches: int
    experts: int = 1
    active: int = 1
    bias: bool = False
    dropout: bool = False
    causal: bool = True
    vectors: int = 1
    centred: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    ffn_bias: bool = False
    head_norm: bool = False
    wide_head_norm: bool = False
    norms: int = 2
    parallel: bool = False
    context_ranks: int = 1

    @property
    def whole_sequence(self) -> int:
        """Tokens that a query meets: those of all ranks that share out the sequence."""
        return self.sequence * self.context_ranks

    @property
    def queries(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head

    @property
    def keys(self) -> int:
        """Width of all key heads; as many values."""
        return self.kv_heads * self.head

    @property
    def products(self) -> tuple[Product, ...]:
        """The matrix products of the forward, attention's core apart."""
        s, h = float(self.sequence), self.hidden
        routed = s * self.active
        made = [
            Product("qkv", s, h, self.queries + 2 * self.keys),
            Product("out", s, self.queries, h),
            Product("up", routed, h, self.branches * self.ffn, self.experts),
            Product("down", routed, self.ffn, h, self.experts),
        ]
        if self.experts > 1:
            made.append(Product("router", s, h, self.experts, split=False))
        return tuple(made)

    @property
    def linears(self) -> tuple[Product, ...]:
        """The same products where queries, keys, values and the branches have one each, in the order in which they
        run (torchtitan: wq, wk, wv, wo, w1, w3, w2).
        """
        s, h = float(self.sequence), self.hidden
        up = Product("up", s * self.active, h, self.ffn, self.experts)
        return (
            Product("query", s, h, self.queries),
            Product("key", s, h, self.keys),
            Product("value", s, h, self.keys),
            Product("out", s, self.queries, h),
            *(up,) * self.branches,
            Product("down", s * self.active, self.ffn, h, self.experts),
        )

    @property
    def state_biases(self) -> bool:
        """Whether the products of queries, keys and values have biases."""
        return self.bias or self.qkv_bias

    @property
    def output_bias(self) -> bool:
        """Whether attention's last product has a bias."""
        return self.bias or self.out_bias

    @property
    def ffn_biases(self) -> bool:
        """Whether the products of the feed-forward part have biases."""
        return self.bias or self.ffn_bias

    @property
    def rms(self) -> bool:
        """Whether norms scale and do no more."""
        return self.vectors == 1 and not self.centred

    @property
    def streams(self) -> int:
        """Activations of a token outside the parts that the backward reads: what norms and first products read.

        Parts one after the other have an input each, and a norm for each besides. A norm of a result reads it.
        """
        return self.norms + (1 if self.parallel else 2)

    @property
    def reads(self) -> int:
        """Different activations that the first products read."""
        return 1 if self.parallel and self.norms == 1 else 2

    @property
    def core_flops(self) -> float:
        """Scores and the weighted sum of values; under a causal mask half of them."""
        whole = 4.0 * self.sequence * self.whole_sequence * self.queries
        return whole / 2 if self.causal else whole

    @property
    def split_weights(self) -> int:
        """Elements that tensor parallelism shares out: matrices, the biases of those split by output, and norms'
        weights for all heads.
        """
        biases = self.queries + 2 * self.keys if self.state_biases else 0
        biases += self.experts * self.branches * self.ffn if self.ffn_biases else 0
        of_heads = self.queries + self.keys if self.wide_head_norm else 0
        return sum(product.weights for product in self.products if product.split) + biases + of_heads

    @property
    def whole_weights(self) -> int:
        """Elements that every device holds: norms, the router, biases of the products split by input."""
        biases = self.hidden if self.output_bias else 0
        biases += self.experts * self.hidden if self.ffn_biases else 0
        router = sum(product.weights for product in self.products if not product.split)
        of_heads = 2 * self.head if self.head_norm and not self.wide_head_norm else 0
        return self.norms * self.vectors * self.hidden + of_heads + biases + router

    @property
    def expert_weights(self) -> int:
        """Elements of all experts, the router apart; 0 where there is one feed-forward part."""
        if self.experts == 1:
            return 0
        return sum(each.weights for each in self.products if each.copies > 1) + sum(self._expert_biases)

    @property
    def _expert_biases(self) -> tuple[int, int]:
        """Of the experts' products: those that tensor parallelism shares out, and those that it does not."""
        each = (self.branches * self.ffn, self.hidden) if self.ffn_biases else (0, 0)
        return self.experts * each[0], self.experts * each[1]

    def weights(self, ways: int = 1, ranks: int = 1) -> int:
        """Elements on one of `ways` devices. ranks: that share out the experts; tensor parallelism then splits all
        other products, and an expert is whole where it is (Megatron-LM, --expert-tensor-parallel-size 1).
        """
        if ranks == 1:
            return -(-self.split_weights // ways) + self.whole_weights
        _, whole_biases = self._expert_biases
        split = self.split_weights - (self.expert_weights - whole_biases)
        whole = self.whole_weights - whole_biases
        return -(-split // ways) + whole + self.expert_weights // ranks

    def saved_bytes(
        self,
        element_bytes: int,
        ways: int = 1,
        *,
        scores: bool = False,
        sequence_split: bool = True,
        keeps_gathered: bool = False,
        narrow_bytes: int | None = None,
        elementwise: Elementwise = "fused",
        repeats_keys: bool = False,
        dispatches: bool = False,
    ) -> float:
        """What the forward keeps on one of `ways` devices for one sample.

        A token: inputs of both norms and of both first products (4 h; `streams`), query, key, value and context,
        input and result of the activation, the dropout masks, attention's row sums. With 16 bits, h = heads x
        head, ffn = 4 h and dropout it is the 34 s h of Korthikanti et al. 2022, table 2 (selective recomputation),
        and the row sums.
        scores: attention keeps its softmax, the mask and the result of its dropout (their 5 a s^2) in place of the
        row sums.
        sequence_split: what lies outside the products is split over the sequence; else each device keeps it whole.
        keeps_gathered: what the first products read is kept as they read it, with the whole sequence; else it is
        gathered again in the backward.
        narrow_bytes: of an element of what the products read, where they run and keep it in another precision than
        the rest. The context is then kept twice: attention's backward reads it as it was made.
        elementwise: eager RMS norms keep their input in fp32, and what they scale; an eager gate its activated
        branch.
        repeats_keys: keys and values are kept for each head of queries.
        dispatches: tokens are copied to the ranks that share out the experts, so that the router keeps its input
        beside the copies that the experts read.
        Norms of heads keep their inputs besides.
        """
        states = 2 * self.queries + 2 * (self.queries if repeats_keys else self.keys)
        normed = self.queries + self.keys if self.head_norm else 0
        eager = elementwise == "eager"
        inner = self.active * (2 * self.branches if eager else self.branches + 1) * self.ffn
        routed = (self.active - 1) * self.hidden if self.experts > 1 else 0
        masks = 2 * MASK_BYTES * self.hidden if self.dropout else 0
        less = 0 if narrow_bytes is None else element_bytes - narrow_bytes
        around = element_bytes * (self.streams * self.hidden + routed) + masks
        around -= less * (self.reads * self.hidden + routed)
        around += element_bytes * self.hidden if dispatches else 0
        around += self.norms * WIDE_BYTES * self.hidden if eager and self.rms else 0
        softmax = (element_bytes + (element_bytes + MASK_BYTES if self.dropout else 0)) * self.whole_sequence
        inside = element_bytes * (states + normed + inner) + self.heads * (softmax if scores else STATISTIC_BYTES)
        inside += WIDE_BYTES * normed if eager and self.rms else 0
        inside -= less * self.active * self.ffn - (narrow_bytes or 0) * self.queries
        if sequence_split:
            whole = self.reads * (element_bytes - less) * self.hidden if keeps_gathered else 0
            return self.sequence * (whole + (around - whole + inside) / ways)
        # The inputs of the first products are whole on each device, as the norms' are.
        return self.sequence * (around + inside / ways)

    def checkpoint_bytes(
        self,
        element_bytes: int,
        ways: int = 1,
        *,
        sequence_split: bool = True,
        elementwise: Elementwise = "fused",
    ) -> float:
        """What a checkpoint that keeps results of operators keeps on one of `ways` devices for one sample.

        The layer's input, the result and the row sums of attention, the results of every second product, and with
        tensor parallelism what both reduce-scatters leave. Products that are split by input leave their results
        whole on each device.
        elementwise: a compiler sees that no gradient reads the result of the last product, nor its reduce-scatter;
        eager code keeps them.
        """
        share = ways if sequence_split else 1
        eager = elementwise == "eager"
        scattered = (2 if eager else 1) if ways > 1 else 0
        around = self.hidden / share + scattered * self.hidden / share
        inside = self.queries / ways
        for each in (self.linears if eager else self.linears[:-1])[::2]:
            inside += each.rows / self.sequence * each.outer / (1 if each.name in SPLIT_BY_INPUT else ways)
        row_sums = STATISTIC_BYTES * self.heads / ways
        return self.sequence * (element_bytes * (around + inside) + row_sums)


VARIATIONS = (
    "centred",
    "qkv_bias",
    "out_bias",
    "ffn_bias",
    "head_norm",
    "wide_head_norm",
    "parallel",
)
"""Fields of LayerShape that an operator has as an attribute where they hold, and else not."""


def layer_shape(operator: Operator, context_ranks: int = 1) -> LayerShape:
    """The shape that an operator of kind LAYER describes. context_ranks: those of its graph.

    Raises PipebenchError for a dim that it lacks.
    """
    dims, said = operator.dims, operator.attributes
    try:
        return LayerShape(
            sequence=dims["sequence"],
            hidden=dims["hidden"],
            heads=dims["heads"],
            kv_heads=dims["kv_heads"],
            head=dims["head"],
            ffn=dims["ffn"],
            branches=said.get("branches", 1),
            experts=said.get("experts", 1),
            active=said.get("active", 1),
            bias=bool(said.get("bias", 0)),
            dropout=bool(said.get("dropout", 0)),
            causal=bool(said.get("causal", 1)),
            vectors=said.get("vectors", 1),
            norms=said.get("norms", 2),
            context_ranks=context_ranks,
            **{name: bool(said.get(name, 0)) for name in VARIATIONS},
        )
    except KeyError as missing:
        raise PipebenchError(f"operator {operator.name!r} lacks the dim {missing.args[0]!r}") from None
