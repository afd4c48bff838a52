"""Shapes of one layer of a language model: its weights and its products. No times.

A Transformer layer has attention and a feed-forward part. Layers of a hybrid model have one part each: one of
these or Mamba-2 (`mamba`).

Counts are of elements for one sample (weights: in all). `ways` devices share the layer as in Megatron-LM: products
are split over heads and over the feed-forward width, norms and residuals over the sequence (Shoeybi et al. 2019,
section 3; Korthikanti et al. 2022, section 4.2.2).
"""

from dataclasses import dataclass

from pipebench.costs.shapes.attention import Latent, latent_of, seen_pairs
from pipebench.costs.shapes.mamba import MAMBA_SIZES, Mamba
from pipebench.costs.shapes.products import Product
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator

LAYER = "transformer_layer"
FURTHER = "further_layer"
"""A layer that predicts the token behind the next one (`LayerShape.further`)."""
ATTENTION, FEED_FORWARD, MAMBA = "attention_layer", "feed_forward_layer", "mamba_layer"
"""Layers of one part, with a norm before it and a residual around it."""
STACKED = (LAYER, ATTENTION, FEED_FORWARD, MAMBA)
"""Layers that a model is a stack of."""
LAYERS = (*STACKED, FURTHER)
EMBEDDING, POSITIONS, NORM, HEAD = "vocab_embedding", "position_embedding", "token_norm", "vocab_head"
LANGUAGE_KINDS = (EMBEDDING, POSITIONS, *LAYERS, NORM, HEAD)
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
    window, chunk: of the keys that a query sees (`seen_pairs`). sinks: attention's softmax counts one more score,
    which each head learns. latent: keys and values, and maybe queries, are of low rank. router_bias: whether the
    router has one. shared_ffn: width of an expert that all tokens pass besides, 0 for none; shared_gate: whether
    it is scaled by a product of its own. further: the layer reads the embedding of the next token besides: both
    are normed and one product joins them, and its result is normed for the head (DeepSeek-AI 2024, DeepSeek-V3,
    section 2.2). heads: 0 where there is no attention; ffn: 0 where there is no feed-forward part; mamba: the part
    of that name, where there is one.
    """

    sequence: int
    hidden: int
    heads: int = 0
    kv_heads: int = 0
    head: int = 0
    ffn: int = 0
    branches: int = 1
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
    window: int = 0
    chunk: int = 0
    sinks: bool = False
    latent: Latent | None = None
    router_bias: bool = False
    shared_ffn: int = 0
    shared_gate: bool = False
    further: bool = False
    mamba: Mamba | None = None
    context_ranks: int = 1

    @property
    def kind(self) -> str:
        """Of the operator that the layer is."""
        if self.mamba:
            return MAMBA
        if not self.heads:
            return FEED_FORWARD
        if not self.ffn:
            return ATTENTION
        return FURTHER if self.further else LAYER

    @property
    def dims(self) -> dict[str, int]:
        """Of that operator, beside the tokens and the width."""
        part = self.mamba or self
        return {name: getattr(part, name) for name in SIZES[self.kind]}

    @property
    def parts(self) -> int:
        """Parts with a residual around them."""
        return (self.heads > 0) + (self.ffn > 0) + (self.mamba is not None)

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
        """Width of all key heads."""
        return self.kv_heads * self.head

    @property
    def values(self) -> int:
        """Width of all value heads."""
        return self.kv_heads * (self.latent.value if self.latent else self.head)

    @property
    def context(self) -> int:
        """Width of what attention makes."""
        return self.heads * (self.latent.value if self.latent else self.head)

    @property
    def core_head(self) -> float:
        """Width of a head that the core works on, the mean of keys and values."""
        return (self.head + self.latent.value) / 2 if self.latent else self.head

    @property
    def products(self) -> tuple[Product, ...]:
        """The matrix products of the forward, attention's core apart."""
        s, h = float(self.sequence), self.hidden
        routed = s * self.active
        states = (Product("qkv", s, h, self.queries + 2 * self.keys),)
        made: list[Product] = []
        if self.heads:
            made += self.latent.products(s, h, self.heads, self.head) if self.latent else states
            made.append(Product("out", s, self.context, h))
        if self.ffn:
            made.append(Product("up", routed, h, self.branches * self.ffn, self.experts))
            made.append(Product("down", routed, self.ffn, h, self.experts))
        if self.mamba:
            made += self.mamba.products(s, h)
        if self.experts > 1:
            made.append(Product("router", s, h, self.experts, split=False))
        if self.shared_ffn:
            made.append(Product("shared_up", s, h, self.branches * self.shared_ffn))
            made.append(Product("shared_down", s, self.shared_ffn, h))
        if self.shared_gate:
            made.append(Product("shared_gate", s, h, 1, split=False, by_tokens=True))
        if self.further:
            made.append(Product("join", s, 2 * h, h))
        return tuple(made)

    @property
    def linears(self) -> tuple[Product, ...]:
        """The same products where queries, keys, values and the branches have one each, in the order in which they
        run (torchtitan: wq, wk, wv, wo, w1, w3, w2).
        """
        s, h = float(self.sequence), self.hidden
        up = Product("up", s * self.active, h, self.ffn, self.experts)
        states = Product("query", s, h, self.queries), Product("key", s, h, self.keys)
        shared = Product("shared_up", s, h, self.shared_ffn), Product("shared_down", s, self.shared_ffn, h)
        attention = (
            *(
                self.latent.products(s, h, self.heads, self.head)
                if self.latent
                else (*states, Product("value", s, h, self.keys))
            ),
            Product("out", s, self.context, h),
        )
        feed_forward = (
            *(up,) * self.branches,
            Product("down", s * self.active, self.ffn, h, self.experts),
        )
        return (
            *(attention if self.heads else ()),
            *(feed_forward if self.ffn else ()),
            *(self.mamba.products(s, h) if self.mamba else ()),
            *((*(shared[0],) * self.branches, shared[1]) if self.shared_ffn else ()),
            *((Product("join", s, 2 * h, h),) if self.further else ()),
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
        return self.norms + (1 if self.parallel else self.parts)

    @property
    def norm_count(self) -> int:
        """Norms over the width."""
        return self.norms + (3 if self.further else 0)

    @property
    def reads(self) -> int:
        """Different activations that the first products read."""
        return 1 if self.parallel and self.norms == 1 else self.parts

    @property
    def core_flops(self) -> float:
        """Scores and the weighted sum of values; under a causal mask half of them, or those of a band. Ranks that
        share out the sequence have an equal part each.
        """
        if self.causal:
            pairs = seen_pairs(self.whole_sequence, self.window, self.chunk)
            return 2.0 * pairs * (self.queries + self.context) / self.context_ranks
        return 4.0 * self.sequence * self.whole_sequence * self.queries

    def crossings(self, *, shared: bool) -> tuple[float, ...]:
        """Elements of a token in each all-reduce of tensor parallelism, one way. A gather is half of one.

        shared: ranks share out the experts, each with its own part of the sequence; an expert that all tokens pass
        is split as any other feed-forward part. A table that is split reduces what it looks up, and a product that
        is split by output gathers its result and scatters its gradient.
        """
        besides = (self.hidden,) * 2 if self.further else ()
        attention = (self.hidden + self.latent.gathered(self.hidden)) / 2 if self.latent else self.hidden
        return (
            *((attention,) if self.heads else ()),
            *((self.hidden,) if self.ffn and (not shared or self.shared_ffn) else ()),
            *((self.hidden,) if self.mamba else ()),
            *besides,
        )

    @property
    def split_weights(self) -> int:
        """Elements that tensor parallelism shares out: matrices, the biases of those split by output, and norms'
        weights for all heads.
        """
        biases = self.queries + 2 * self.keys if self.state_biases else 0
        biases += self.experts * self.branches * self.ffn if self.ffn_biases else 0
        of_heads = self.queries + self.keys if self.wide_head_norm else 0
        of_heads += self.heads if self.sinks else 0
        of_heads += self.mamba.vectors if self.mamba else 0
        return sum(product.weights for product in self.products if product.split) + biases + of_heads

    @property
    def whole_weights(self) -> int:
        """Elements that every device holds: norms, products that are not split, biases of those split by input."""
        biases = self.hidden if self.output_bias else 0
        biases += self.experts * self.hidden if self.ffn_biases else 0
        biases += self.experts if self.router_bias else 0
        router = sum(product.weights for product in self.products if not product.split)
        of_heads = 2 * self.head if self.head_norm and not self.wide_head_norm else 0
        of_heads += self.latent.ranks if self.latent else 0
        return self.norm_count * self.vectors * self.hidden + of_heads + biases + router

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


VARIATIONS = (
    "centred",
    "qkv_bias",
    "out_bias",
    "ffn_bias",
    "head_norm",
    "wide_head_norm",
    "parallel",
    "sinks",
    "router_bias",
    "shared_gate",
    "further",
)
"""Fields of LayerShape that an operator has as an attribute where they hold, and else not."""
WIDTHS = ("window", "chunk", "shared_ffn")
"""Other fields that it has where they are not 0."""


SIZES: dict[str, tuple[str, ...]] = {
    LAYER: ("heads", "kv_heads", "head", "ffn"),
    FURTHER: ("heads", "kv_heads", "head", "ffn"),
    ATTENTION: ("heads", "kv_heads", "head"),
    FEED_FORWARD: ("ffn",),
    MAMBA: MAMBA_SIZES,
}
"""Dims of an operator that is a layer, by its kind, beside `sequence` and `hidden`."""


def layer_shape(operator: Operator, context_ranks: int = 1) -> LayerShape:
    """The shape that an operator of LAYERS describes. context_ranks: those of its graph.

    Raises PipebenchError for a dim that it lacks.
    """
    dims, said = operator.dims, operator.attributes
    try:
        size = {name: dims[name] for name in SIZES[operator.kind]}
        mamba = Mamba(**size) if operator.kind == MAMBA else None
        size = {} if mamba else size
        return LayerShape(
            sequence=dims["sequence"],
            hidden=dims["hidden"],
            heads=size.get("heads", 0),
            kv_heads=size.get("kv_heads", 0),
            head=size.get("head", 0),
            ffn=size.get("ffn", 0),
            mamba=mamba,
            branches=said.get("branches", 1),
            experts=said.get("experts", 1),
            active=said.get("active", 1),
            bias=bool(said.get("bias", 0)),
            dropout=bool(said.get("dropout", 0)),
            causal=bool(said.get("causal", 1)),
            vectors=said.get("vectors", 1),
            norms=said.get("norms", 2),
            context_ranks=context_ranks,
            window=said.get("window", 0),
            chunk=said.get("chunk", 0),
            shared_ffn=said.get("shared_ffn", 0),
            latent=latent_of(said),
            **{name: bool(said.get(name, 0)) for name in VARIATIONS},
        )
    except KeyError as missing:
        raise PipebenchError(f"operator {operator.name!r} lacks the dim {missing.args[0]!r}") from None
