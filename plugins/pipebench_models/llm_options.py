"""Options of the model `llm`, and what is true of all models of an architecture."""

import re
from dataclasses import dataclass
from typing import Literal

from pipebench.domain.value import Value, require
from pipebench_models.options import require_positive

Architecture = Literal[
    "llama",
    "mixtral",
    "gpt2",
    "bert",
    "bloom",
    "cohere",
    "falcon",
    "gpt_neox",
    "gptj",
    "internlm2",
    "mpt",
    "nemotron_h",
    "olmo",
    "opt",
    "phi",
    "stablelm",
    "starcoder2",
]
Activation = Literal["usual", "silu", "gelu", "relu", "squared_relu"]


@dataclass(frozen=True, slots=True)
class ArchitectureFacts:
    """What all models of an architecture have.

    paths: modules of the embedding, of the layers (their number follows), of the norm, of the head and, where
    positions are learned, of those. norm: rms, layer (it shifts), scale (it subtracts the mean and scales), plain
    (it has no weights). gated: whether the feed-forward part is. biases: whether all products of a layer have one.
    causal: whether a token sees those before it only. routed: whether there may be several experts. hybrid:
    whether each layer has one part, which the option `hybrid` names.
    """

    paths: tuple[str, ...]
    norm: Literal["rms", "layer", "scale", "plain"] = "layer"
    gated: bool = False
    biases: bool = False
    causal: bool = True
    routed: bool = False
    hybrid: bool = False

    @property
    def vectors(self) -> int:
        """Of a norm's weights."""
        return {"rms": 1, "layer": 2, "scale": 1, "plain": 0}[self.norm]

    @property
    def learned(self) -> bool:
        """Whether positions are learned."""
        return len(self.paths) == 5


MODEL = ("model.embed_tokens", "model.layers.", "model.norm", "lm_head")
TRANSFORMER = ("transformer.wte", "transformer.h.", "transformer.ln_f", "lm_head")
WORDS = ("transformer.word_embeddings", *TRANSFORMER[1:])
DECODER = ("model.decoder.embed_tokens", "model.decoder.layers.", "model.decoder.final_layer_norm", "lm_head")
ARCHITECTURES: dict[Architecture, ArchitectureFacts] = {
    "llama": ArchitectureFacts(MODEL, norm="rms", gated=True),
    "mixtral": ArchitectureFacts(MODEL, norm="rms", gated=True, routed=True),
    "gpt2": ArchitectureFacts((*TRANSFORMER, "transformer.wpe"), biases=True),
    "bert": ArchitectureFacts(
        (
            "bert.embeddings.word_embeddings",
            "bert.encoder.layer.",
            "cls.transform",
            "cls",
            "bert.embeddings",
        ),
        biases=True,
        causal=False,
    ),
    "bloom": ArchitectureFacts(WORDS, biases=True),
    "cohere": ArchitectureFacts(MODEL, norm="scale", gated=True),
    "falcon": ArchitectureFacts(WORDS),
    "gpt_neox": ArchitectureFacts(
        ("gpt_neox.embed_in", "gpt_neox.layers.", "gpt_neox.final_layer_norm", "embed_out")
    ),
    "gptj": ArchitectureFacts(TRANSFORMER),
    "internlm2": ArchitectureFacts(
        ("model.tok_embeddings", "model.layers.", "model.norm", "output"), norm="rms", gated=True
    ),
    "mpt": ArchitectureFacts(
        ("transformer.wte", "transformer.blocks.", "transformer.norm_f", "lm_head"), norm="scale"
    ),
    "nemotron_h": ArchitectureFacts(
        ("backbone.embeddings", "backbone.layers.", "backbone.norm_f", "lm_head"),
        norm="rms",
        routed=True,
        hybrid=True,
    ),
    "olmo": ArchitectureFacts(MODEL, norm="plain", gated=True),
    "opt": ArchitectureFacts((*DECODER, "model.decoder.embed_positions")),
    "phi": ArchitectureFacts(
        ("model.embed_tokens", "model.layers.", "model.final_layernorm", "lm_head"), biases=True
    ),
    "stablelm": ArchitectureFacts(MODEL, gated=True),
    "starcoder2": ArchitectureFacts(MODEL),
}
"""Modules are named as in the Hugging Face implementation (of internlm2 as in its own)."""


_COUNT = r"(?:[1-9][0-9]{0,3})?"
_TURN = re.compile(rf"([a-z])({_COUNT})")
_LETTERS = {"windowed": "wf", "routed": "ed", "hybrid": "made"}
_TURNS = {name: re.compile(rf"(?:[{letters}]{_COUNT})*") for name, letters in _LETTERS.items()}


def take_turns(text: str, layers: int) -> str:
    """A letter for each layer. text: letters, a number behind one repeats it; over again until all have theirs."""
    each = "".join(letter * int(count or 1) for letter, count in _TURN.findall(text))
    return (each * -(-layers // max(1, len(each))))[:layers]


class LLMOptions(Value, frozen=True, kw_only=True):
    """architecture: how a layer is built. layers, hidden, heads, ffn: as in the config. kv_heads: key and value
    heads (0: as many as heads). head: width of a head (0: hidden / heads). vocab: entries of the table.
    sequence: tokens a sample. positions: learned positions (0: as many as tokens; gpt2, bert and opt only).
    token_types: bert's. experts, active: feed-forward parts, and how many of them a token passes (mixtral).
    tied: head and embedding share a table. dropout: whether its masks are kept. qkv_bias: queries, keys and values
    have biases (Qwen2). out_bias, ffn_bias, head_bias: so have attention's last product, those of the
    feed-forward part, the head. head_norm: each head's query and key are normed (Qwen3). wide_head_norm: with
    weights of all heads (OLMo 2). embedding_norm: there is a norm behind the embedding (BLOOM). norms: of a layer;
    4 where results of attention and feed-forward part are normed too (Gemma 2), 1 where both parts read one.
    parallel: both parts read the layer's input (GPT-NeoX). activation: of the feed-forward part; usual: silu where
    that is gated, else gelu. rotary_percent: of a head's features, how many are rotated. alibi: a distance is
    added to attention's scores. These three take no time and are for frameworks. window: how many of the last
    tokens a token sees, itself among them (0: all). chunk: tokens of a part of the sequence whose tokens do not
    see another part (0: one part). windowed: which layers have that: w does, f sees all before it, a number
    repeats the letter, and layers take turns (w5f; empty: all have). sinks: attention's softmax has one more score
    for each head. router_bias: the router has biases. routed: which layers have experts: e has, d has one
    feed-forward part, dense_ffn wide (0: as ffn), as in d3e58; empty: all have. shared_ffn: width of an expert
    that all tokens pass besides (0: none). shared_gate: it is scaled by a product of its own. key_rank: keys and
    values are made of so many features (0: of all), as in DeepSeek-V2, and with query_rank queries; rotated: of a
    head's `head` features those that are rotated, which keys share; value_head: width of a value (0: as head).
    hybrid: the one part of each layer (architecture=nemotron_h): m is Mamba-2, a attention, d one feed-forward
    part, e experts; a number repeats the letter, and layers take turns (memema). mamba_heads, mamba_head: heads of
    Mamba-2 and features of each; mamba_groups: of heads that share what writes and reads their states, of
    mamba_state features; mamba_kernel: tokens of its convolution; mamba_chunk: tokens of a chunk of its scan.
    mtp: further tokens that are predicted, by a layer each, as in DeepSeek-V3, with the model's head and table.
    model_type: what its config.json calls it, for the model's name (empty: the architecture).
    """

    architecture: Architecture = "llama"
    layers: int = 32
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 0
    head: int = 0
    ffn: int = 11008
    vocab: int = 32000
    sequence: int = 2048
    positions: int = 0
    token_types: int = 2
    experts: int = 1
    active: int = 1
    tied: bool = False
    dropout: bool = False
    qkv_bias: bool = False
    head_norm: bool = False
    out_bias: bool = False
    ffn_bias: bool = False
    head_bias: bool = False
    wide_head_norm: bool = False
    embedding_norm: bool = False
    norms: int = 2
    parallel: bool = False
    activation: Activation = "usual"
    rotary_percent: int = 100
    alibi: bool = False
    window: int = 0
    chunk: int = 0
    windowed: str = ""
    sinks: bool = False
    router_bias: bool = False
    routed: str = ""
    dense_ffn: int = 0
    shared_ffn: int = 0
    shared_gate: bool = False
    query_rank: int = 0
    key_rank: int = 0
    rotated: int = 0
    value_head: int = 0
    hybrid: str = ""
    mamba_heads: int = 0
    mamba_head: int = 64
    mamba_groups: int = 8
    mamba_state: int = 128
    mamba_kernel: int = 4
    mamba_chunk: int = 128
    mtp: int = 0
    model_type: str = ""

    @property
    def facts(self) -> ArchitectureFacts:
        """Those of the architecture."""
        return ARCHITECTURES[self.architecture]

    def __post_init__(self) -> None:
        require(
            re.fullmatch(r"\w{0,40}", self.model_type, re.ASCII) is not None,
            f"model_type={self.model_type!r} is no word of up to 40 letters, digits and underscores",
        )
        require_positive(self, "layers", "hidden", "heads", "ffn", "vocab", "sequence", "experts", "active")
        unsigned = ("kv_heads", "head", "positions", "token_types", "window", "chunk", "dense_ffn", "shared_ffn")
        for name in (*unsigned, "query_rank", "key_rank", "rotated", "value_head", "mtp"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")
        require(
            self.head > 0 or self.hidden % self.heads == 0,
            f"heads={self.heads} does not divide hidden={self.hidden}, so the width of a head is not known",
        )
        require(
            self.heads % (self.kv_heads or self.heads) == 0,
            f"kv_heads={self.kv_heads} does not divide heads={self.heads}",
        )
        require(
            self.active <= self.experts, f"active={self.active} of experts={self.experts}: there are not as many"
        )
        require(
            self.experts == 1 or self.facts.routed,
            f"experts={self.experts}: only architecture=mixtral and nemotron_h have several",
        )
        require(
            not self.head_norm or self.facts.norm != "plain",
            f"head_norm=true: the norms of architecture={self.architecture} have no weights",
        )
        require(self.head_norm or not self.wide_head_norm, "wide_head_norm=true: only with head_norm=true")
        for name in ("qkv_bias", "out_bias", "ffn_bias"):
            require(
                not getattr(self, name) or not self.facts.biases,
                f"{name}=true: all products of architecture={self.architecture} have biases",
            )
        require(self.norms in (1, 2, 4), f"norms is {self.norms}, it must be 1, 2 or 4")
        require(
            self.norms == 2 or self.parallel == (self.norms == 1),
            f"norms={self.norms}: 1 goes with parallel=true, 4 with parallel=false",
        )
        require(
            0 <= self.rotary_percent <= 100,
            f"rotary_percent is {self.rotary_percent}, it must be from 0 to 100",
        )
        require(
            self.positions == 0 or self.sequence <= self.positions,
            f"sequence={self.sequence} is longer than the {self.positions} positions that the model has learned",
        )
        self._require_attention()
        self._require_experts()
        self._require_hybrid()

    def _require_attention(self) -> None:
        """Raise InvalidValue where options on windows or on latent attention do not go together."""
        seen = next((name for name in ("window", "chunk") if getattr(self, name)), None)
        require(not (self.window and self.chunk), f"window={self.window} and chunk={self.chunk}: one of them")
        require(
            seen is None or self.facts.causal,
            f"{seen}={seen and getattr(self, seen)}: architecture={self.architecture} sees tokens behind as well",
        )
        require(
            _TURNS["windowed"].fullmatch(self.windowed) is not None,
            f"windowed={self.windowed}: it takes w (a window) and f (all), and numbers that repeat, such as w5f",
        )
        require(seen is not None or not self.windowed, f"windowed={self.windowed}: without a window or a chunk")
        latent = [name for name in ("query_rank", "rotated", "value_head") if getattr(self, name)]
        require(
            self.key_rank > 0 or not latent,
            f"{latent[0] if latent else ''}={latent and getattr(self, latent[0])}: only with key_rank",
        )
        if not self.key_rank:
            return
        require(
            0 <= self.rotated < (self.head or self.hidden // self.heads),
            f"rotated={self.rotated}: a head has {self.head or self.hidden // self.heads} features",
        )
        require(
            self.kv_heads in (0, self.heads),
            f"kv_heads={self.kv_heads}: with key_rank there are as many as heads",
        )
        for name in ("head_norm", "qkv_bias"):
            require(not getattr(self, name), f"{name}=true: not with key_rank")

    def _require_experts(self) -> None:
        """Raise InvalidValue where options on experts do not go together."""
        require(
            _TURNS["routed"].fullmatch(self.routed) is not None,
            f"routed={self.routed}: it takes e (experts) and d (dense), and numbers that repeat, such as d3e58",
        )
        for name in ("routed", "dense_ffn", "shared_ffn", "router_bias"):
            said = getattr(self, name)
            require(not said or self.experts > 1, f"{name}={str(said).lower()}: only with experts")
        require(self.shared_ffn > 0 or not self.shared_gate, "shared_gate=true: only with shared_ffn")
        require(
            self.routed != "" or self.facts.hybrid or not self.dense_ffn,
            f"dense_ffn={self.dense_ffn}: only with routed",
        )

    def _require_hybrid(self) -> None:
        """Raise InvalidValue where options on layers of one part do not go together."""
        require(
            _TURNS["hybrid"].fullmatch(self.hybrid) is not None,
            f"hybrid={self.hybrid}: it takes m (Mamba-2), a (attention), d (dense) and e (experts), and numbers "
            "that repeat, such as m2a",
        )
        require(
            self.facts.hybrid == bool(self.hybrid),
            "architecture=nemotron_h: say the part of each layer with hybrid, such as hybrid=md3ad"
            if self.facts.hybrid
            else f"hybrid={self.hybrid}: only architecture=nemotron_h has layers of one part",
        )
        if not self.hybrid:
            return
        for name in ("routed", "window", "chunk", "sinks", "key_rank", "mtp", "parallel"):
            said = getattr(self, name)
            require(not said, f"{name}={str(said).lower()}: not with hybrid")
        require(self.norms == 2, f"norms={self.norms}: not with hybrid, whose layers have one each")
        parts = take_turns(self.hybrid, self.layers)
        require(("e" in parts) == (self.experts > 1), f"experts={self.experts}: hybrid has e where there are some")
        if "m" not in parts:
            return
        names = ("mamba_heads", "mamba_head", "mamba_groups", "mamba_state", "mamba_kernel", "mamba_chunk")
        require_positive(self, *names)
        require(
            self.mamba_heads % self.mamba_groups == 0,
            f"mamba_groups={self.mamba_groups} does not divide mamba_heads={self.mamba_heads}",
        )
