"""Language models as a chain: embedding, layers, norm, head; one operator each.

Names of modules (`path`) are those of the Hugging Face implementation. Layers count from 0.
"""

from dataclasses import replace
from typing import cast

from pipebench.costs.shapes.attention import Latent, latent_attributes
from pipebench.costs.shapes.mamba import MAMBA_SIZES, Mamba
from pipebench.costs.shapes.transformer import (
    EMBEDDING,
    FURTHER,
    HEAD,
    NORM,
    POSITIONS,
    VARIATIONS,
    WIDTHS,
    LayerShape,
)
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import ELEMENT_BYTES
from pipebench_models.llm_options import LLMOptions, take_turns

ID_BYTES = 8


def build_llm(context: Context) -> OperatorGraph:
    """embedding, positions (where they are learned), layers.0 …, norm, head; the loss runs inside the head.

    Layers that predict further tokens stand before the norm: mtp.0 …, each with the table of the embedding.

    bert's `norm` is the dense layer, activation and norm before its masked-language-model head.
    """
    options = cast(LLMOptions, context.options)
    facts, hidden, bert = options.facts, options.hidden, options.architecture == "bert"
    chain = _Chain(f"{options.model_type or options.architecture}-{options.layers}x{options.hidden}", options)
    embed, layers, norm, head, *positions = facts.paths
    norm_weights = facts.vectors * hidden
    table = "embedding.table"
    tables = {table: options.vocab * hidden}
    if options.embedding_norm:
        tables["embedding.norm"] = norm_weights
    chain.add("embedding", EMBEDDING, {"entries": options.vocab}, tables, embed)
    if facts.learned:
        rows = (options.positions or options.sequence) + (options.token_types if bert else 0)
        held = rows * hidden + (norm_weights if bert else 0)
        chain.add("positions", POSITIONS, {"rows": rows}, {"positions.table": held}, positions[0])
    for layer, shape in enumerate(layers_of(options)):
        attributes = _attributes(shape, options)
        weights = {f"layers.{layer}.weights": shape.weights()}
        chain.add(f"layers.{layer}", shape.kind, shape.dims, weights, f"{layers}{layer}", attributes, layer)
    for further in range(options.mtp):
        chain.add_further(further, f"{layers}{options.layers + further}")
    held = norm_weights + (hidden * (hidden + 1) if bert else 0)
    centred = {"centred": 1} if shape.centred else {}
    chain.add("norm", NORM, {}, {"norm.weights": held} if held else {}, norm, centred)
    own = {table if options.tied else "head.weights": options.vocab * hidden}
    if options.head_bias:
        own["head.bias"] = options.vocab
    predictions = {"predictions": 1 + options.mtp} if options.mtp else {}
    chain.add("head", HEAD, {"vocab": options.vocab} | predictions, own, head)
    return chain.graph()


def _attributes(shape: LayerShape, options: LLMOptions) -> dict[str, int]:
    """Of a layer: what its shape is besides its widths, and what frameworks are told of it."""
    named = (*(("branches", "experts", "active", "bias") if shape.ffn else ()), "dropout", "causal", "vectors")
    attributes = {name: int(getattr(shape, name)) for name in named}
    attributes |= {name: 1 for name in VARIATIONS if getattr(shape, name)}
    attributes |= {name: getattr(shape, name) for name in WIDTHS if getattr(shape, name)}
    attributes |= latent_attributes(shape.latent)
    if shape.norms != 2:
        attributes["norms"] = shape.norms
    if shape.ffn and options.activation not in ("usual", "silu" if shape.branches == 2 else "gelu"):
        attributes[options.activation] = 1
    if shape.heads and options.rotary_percent != 100:
        attributes["rotary_percent"] = options.rotary_percent
    return attributes | ({"alibi": 1} if options.alibi else {})


def layers_of(options: LLMOptions) -> list[LayerShape]:
    """The shape of each layer, those that are alike made once."""
    if options.hybrid:
        parts = take_turns(options.hybrid, options.layers)
        alone = {part: _part(options, part) for part in set(parts)}
        return [alone[part] for part in parts]
    windowed = take_turns(options.windowed or "w", options.layers)
    routed = take_turns(options.routed or "e", options.layers)
    each = list(zip(windowed, routed, strict=True))
    made = {turn: _layer(options, windowed=turn[0] == "w", routed=turn[1] == "e") for turn in set(each)}
    return [made[turn] for turn in each]


def _layer(options: LLMOptions, *, windowed: bool, routed: bool) -> LayerShape:
    """windowed: whether its tokens see a part of those before them. routed: whether it has the experts."""
    facts, head = options.facts, options.head or options.hidden // options.heads
    latent = Latent(
        query_rank=options.query_rank,
        key_rank=options.key_rank,
        rotated=options.rotated,
        value=options.value_head or head,
    )
    return LayerShape(
        sequence=options.sequence,
        hidden=options.hidden,
        heads=options.heads,
        kv_heads=options.kv_heads or options.heads,
        head=head,
        ffn=options.ffn if routed else options.dense_ffn or options.ffn,
        branches=2 if facts.gated else 1,
        experts=options.experts if routed else 1,
        active=options.active if routed else 1,
        bias=facts.biases,
        dropout=options.dropout,
        causal=facts.causal,
        vectors=facts.vectors,
        centred=facts.norm in ("scale", "plain"),
        qkv_bias=options.qkv_bias,
        out_bias=options.out_bias,
        ffn_bias=options.ffn_bias,
        head_norm=options.head_norm,
        wide_head_norm=options.wide_head_norm,
        norms=options.norms,
        parallel=options.parallel,
        window=options.window if windowed else 0,
        chunk=options.chunk if windowed else 0,
        sinks=options.sinks,
        latent=latent if options.key_rank else None,
        router_bias=options.router_bias and routed,
        shared_ffn=options.shared_ffn if routed else 0,
        shared_gate=options.shared_gate and routed,
    )


def _part(options: LLMOptions, part: str) -> LayerShape:
    """A layer of one part: its letter in the option `hybrid`. Of a whole layer's shape what that part has."""
    whole = replace(_layer(options, windowed=True, routed=part == "e"), norms=1)
    if part != "a":
        whole = replace(whole, heads=0, kv_heads=0, head=0, qkv_bias=False, out_bias=False)
        whole = replace(whole, head_norm=False, wide_head_norm=False)
    if part in "am":
        whole = replace(whole, ffn=0, branches=1, ffn_bias=False)
    if part == "m":
        mamba = Mamba(**{name: getattr(options, f"mamba_{name}") for name in MAMBA_SIZES})
        whole = replace(whole, mamba=mamba)
    return whole


class _Chain:
    """Operators that each read what the one before made: (sequence, hidden) activations."""

    def __init__(self, name: str, options: LLMOptions) -> None:
        self._name, self._options = name, options
        self._dims = {"sequence": options.sequence, "hidden": options.hidden}
        self._size = float(ELEMENT_BYTES * options.sequence * options.hidden)
        ids = float(ID_BYTES * options.sequence)
        self._tensors = [Tensor(name="ids", forward_bytes_per_sample=ids, gradient_bytes_per_sample=0.0)]
        self._operators: list[Operator] = []
        self._parameters: dict[str, Parameter] = {}

    def add(
        self,
        name: str,
        kind: str,
        dims: dict[str, int],
        weights: dict[str, int],
        path: str,
        attributes: dict[str, int] | None = None,
        layer: int | None = None,
        streams: int = 1,
    ) -> None:
        """weights: elements of each parameter. streams: of (sequence, hidden) activations that it makes."""
        for parameter, elements in weights.items():
            self._parameters[parameter] = Parameter(name=parameter, bytes=ELEMENT_BYTES * elements)
        read = self._tensors[-1].name
        self._operators.append(
            Operator(
                name=name,
                kind=kind,
                dims=self._dims | dims,
                inputs=(read,),
                parameters=tuple(weights),
                attributes=attributes or {},
                layer=layer,
                path=path,
            )
        )
        if kind != HEAD:
            self._tensors.append(
                Tensor(
                    name=f"{name}.out",
                    producer=name,
                    forward_bytes_per_sample=streams * self._size,
                    gradient_bytes_per_sample=streams * self._size,
                )
            )

    def add_further(self, number: int, path: str) -> None:
        """A layer like the last one that predicts a further token; it passes on what that one made besides."""
        options = self._options
        last = layers_of(options)[-1]
        shape = replace(last, further=True)
        dims = shape.dims | {"entries": options.vocab}
        name = f"mtp.{number}"
        weights = {f"{name}.weights": shape.weights(), "embedding.table": options.vocab * options.hidden}
        self.add(name, FURTHER, dims, weights, path, _attributes(shape, options), streams=2 + number)

    def graph(self) -> OperatorGraph:
        """All that was added."""
        return OperatorGraph(
            name=self._name,
            operators=tuple(self._operators),
            tensors=tuple(self._tensors),
            parameters=tuple(self._parameters.values()),
        )
