"""Language models as a chain: embedding, layers, norm, head; one operator each.

Names of modules (`path`) are those of the Hugging Face implementation. Layers count from 0.
"""

from typing import cast

from pipebench.costs.transformer import EMBEDDING, HEAD, LAYER, NORM, POSITIONS, LayerShape
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import ELEMENT_BYTES
from pipebench_models.options import LLMOptions

ID_BYTES = 8
PATHS = {
    "llama": ("model.embed_tokens", "", "model.layers.", "model.norm", "lm_head"),
    "mixtral": ("model.embed_tokens", "", "model.layers.", "model.norm", "lm_head"),
    "gpt2": ("transformer.wte", "transformer.wpe", "transformer.h.", "transformer.ln_f", "lm_head"),
    "bert": ("bert.embeddings.word_embeddings", "bert.embeddings", "bert.encoder.layer.", "cls.transform", "cls"),
}
"""Module of the embedding, of the positions, of the layers (their number follows), of the norm and of the head."""


def build_llm(context: Context) -> OperatorGraph:
    """embedding, positions (gpt2 and bert), layers.0 …, norm, head; the loss runs inside the head.

    bert's `norm` is the dense layer, activation and norm before its masked-language-model head.
    """
    options = cast(LLMOptions, context.options)
    chain = _Chain(f"{options.architecture}-{options.layers}x{options.hidden}", options)
    embed, positions, layers, norm, head = PATHS[options.architecture]
    hidden, learned = options.hidden, options.architecture in ("gpt2", "bert")
    vectors = 2 if learned else 1
    table = "embedding.table"
    chain.add("embedding", EMBEDDING, {"entries": options.vocab}, {table: options.vocab * hidden}, embed)
    if learned:
        rows = options.positions or options.sequence
        rows += options.token_types if options.architecture == "bert" else 0
        norms = vectors * hidden if options.architecture == "bert" else 0
        chain.add("positions", POSITIONS, {"rows": rows}, {"positions.table": rows * hidden + norms}, positions)
    shape = layer_of(options)
    dims = {"heads": shape.heads, "kv_heads": shape.kv_heads, "head": shape.head, "ffn": shape.ffn}
    named = ("branches", "experts", "active", "bias", "dropout", "causal", "vectors")
    attributes = {name: int(getattr(shape, name)) for name in named}
    attributes |= {name: 1 for name in ("qkv_bias", "head_norm") if getattr(shape, name)}
    for layer in range(options.layers):
        weights = {f"layers.{layer}.weights": shape.weights()}
        chain.add(f"layers.{layer}", LAYER, dims, weights, f"{layers}{layer}", attributes, layer)
    held = vectors * hidden + (hidden * (hidden + 1) if options.architecture == "bert" else 0)
    chain.add("norm", NORM, {}, {"norm.weights": held}, norm)
    own = {table: options.vocab * hidden} if options.tied else {"head.weights": options.vocab * hidden}
    chain.add("head", HEAD, {"vocab": options.vocab}, own, head)
    return chain.graph()


def layer_of(options: LLMOptions) -> LayerShape:
    """The shape of each layer."""
    learned = options.architecture in ("gpt2", "bert")
    return LayerShape(
        sequence=options.sequence,
        hidden=options.hidden,
        heads=options.heads,
        kv_heads=options.kv_heads or options.heads,
        head=options.head or options.hidden // options.heads,
        ffn=options.ffn,
        branches=1 if learned else 2,
        experts=options.experts,
        active=options.active,
        bias=learned,
        dropout=options.dropout,
        causal=options.architecture != "bert",
        vectors=2 if learned else 1,
        qkv_bias=options.qkv_bias,
        head_norm=options.head_norm,
    )


class _Chain:
    """Operators that each read what the one before made: (sequence, hidden) activations."""

    def __init__(self, name: str, options: LLMOptions) -> None:
        self._name = name
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
    ) -> None:
        """weights: elements of each parameter."""
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
                    forward_bytes_per_sample=self._size,
                    gradient_bytes_per_sample=self._size,
                )
            )

    def graph(self) -> OperatorGraph:
        """All that was added."""
        return OperatorGraph(
            name=self._name,
            operators=tuple(self._operators),
            tensors=tuple(self._tensors),
            parameters=tuple(self._parameters.values()),
        )
