"""What can be said of a model_type of Hugging Face: keys, their defaults, and how layers differ."""

from dataclasses import dataclass, field
from typing import Any, Literal

Options = dict[str, Any]
"""Of the model `llm`."""
Windows = Literal["unsaid", "all", "turns", "last"]
"""unsaid: no rule. all: every layer. turns: all but every n-th. last: from `max_window_layers` on."""
Routed = Literal["all", "first-dense", "steps", "interleaved"]
"""all: every layer. first-dense: from a layer on. steps: by `decoder_sparse_step` and `mlp_only_layers`.
interleaved: by `interleave_moe_layer_step` or `moe_layers`."""


@dataclass(frozen=True, slots=True)
class Key:
    """A count under one of these names, the first that is there. default: where none is; None: one must be."""

    names: tuple[str, ...]
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """A key that is true or false, and the options that follow. A value may be a Key."""

    key: str
    default: bool
    on: Options
    off: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFacts:
    """One model_type.

    architecture: of the model `llm`. gated, learned: what that says of the feed-forward part and of positions.
    longest: the most tokens. ffn_factor: times the hidden width it is the feed-forward width that no key says.
    head_width, tied, activation: where no key says it; a head_width of 0 is hidden / heads. dropout: its key, and
    the share where that is not there. rotary: the share of a head's features that is rotated. always: options of
    all; switches: of some, a later one wins. more_positions: rows of learned positions besides `longest`.
    required: values that keys must have, or be left out; alike: keys that must have the value of another one.
    windows: which layers see a window where no `layer_types` says it (`hf_layers`). full_every: every such layer
    sees all. routed: which layers have experts; first_routed: before how many none has. dense_ffn: width of the
    others. shared: counts whose product is the width of an expert that all tokens pass. latent: keys and values
    are of low rank. parts: layers have one part each, which `hybrid_override_pattern` or `layers_block_type` names
    (`hf_layers`); then `experts`, `active`, `expert_ffn` and `shared` count where some have experts.
    left_out: what no price knows and holds where the file does not say its key. not_priced: of all of them.
    """

    architecture: str
    gated: bool = True
    learned: bool = False
    hidden: Key = Key(("hidden_size",))
    layers: Key = Key(("num_hidden_layers",))
    heads: Key = Key(("num_attention_heads",))
    kv_heads: Key = Key(("num_key_value_heads",), 0)
    ffn: Key = Key(("intermediate_size",))
    longest: Key = Key(("max_position_embeddings",), 0)
    experts: Key | None = None
    active: Key | None = None
    ffn_factor: Key = Key((), 0)
    head_width: int = 0
    tied: bool = False
    dropout: tuple[str, float] = ("", 0.0)
    rotary: float = 1.0
    activation: str = "silu"
    always: Options = field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    more_positions: int = 0
    required: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    alike: dict[str, str] = field(default_factory=dict)
    left_out: Options = field(default_factory=dict)
    not_priced: tuple[str, ...] = ()
    windows: Windows = "unsaid"
    full_every: Key = Key((), 0)
    routed: Routed = "all"
    first_routed: Key = Key((), 0)
    dense_ffn: Key | None = None
    shared: tuple[Key, ...] = ()
    latent: bool = False
    parts: bool = False
    expert_ffn: Key | None = None


ATTENTION_BIASES: Options = {"qkv_bias": True, "out_bias": True}
ALL_BIASES: Options = ATTENTION_BIASES | {"ffn_bias": True}
ONE_NORM: Options = {"parallel": True, "norms": 1}
WIDE_NORMS: Options = {"head_norm": True, "wide_head_norm": True}
ATTENTION_BIAS = Switch("attention_bias", False, ATTENTION_BIASES)
QKV_BIAS = Switch("attention_bias", True, {"qkv_bias": True})
MLP_BIAS = Switch("mlp_bias", False, {"ffn_bias": True})
FOUR_TIMES = Key((), 4)
GELU = "gelu_pytorch_tanh"
N_LAYER, N_HEAD = Key(("n_layer", "num_hidden_layers")), Key(("n_head", "num_attention_heads"))
WINDOW: Options = {"sliding_window": 4096}
SOME_ROTATE = "that some layers rotate nothing"
SUMS_OF_ALL_HEADS = "the exchange of norms over all heads under tensor parallelism"
