"""What each model_type of Hugging Face is as the model `llm`: the names of its keys, and how its layers differ.

Read from the public configuration and modelling code of the library transformers (of internlm2 from its own); a
key that a config.json leaves out has the default that it has there. Tests hold published numbers of parameters
against it.
"""

from pipebench.formats.hf_experts import EXPERTS
from pipebench.formats.hf_facts import (
    ALL_BIASES,
    ATTENTION_BIAS,
    ATTENTION_BIASES,
    FOUR_TIMES,
    GELU,
    MLP_BIAS,
    N_HEAD,
    N_LAYER,
    ONE_NORM,
    QKV_BIAS,
    SOME_ROTATE,
    SUMS_OF_ALL_HEADS,
    WIDE_NORMS,
    WINDOW,
    ConfigFacts,
    Key,
    Options,
    Switch,
)

GEMMA: Options = {"head_width": 256, "tied": True, "activation": GELU, "switches": (ATTENTION_BIAS,)}
COHERE: Options = {
    "architecture": "cohere",
    "tied": True,
    "always": ONE_NORM,
    "switches": (ATTENTION_BIAS, Switch("use_qk_norm", False, WIDE_NORMS)),
}
OLMO2: Options = {
    "architecture": "llama",
    "always": WIDE_NORMS,
    "switches": (ATTENTION_BIAS,),
    "not_priced": (SUMS_OF_ALL_HEADS,),
}
CONFIGS: dict[str, ConfigFacts] = {
    "bert": ConfigFacts(
        architecture="bert",
        gated=False,
        learned=True,
        tied=True,
        dropout=("hidden_dropout_prob", 0.1),
        activation="gelu",
    ),
    "bloom": ConfigFacts(
        architecture="bloom",
        gated=False,
        hidden=Key(("n_embed", "hidden_size")),
        layers=N_LAYER,
        heads=Key(("num_attention_heads", "n_head")),
        ffn=Key((), 0),
        ffn_factor=FOUR_TIMES,
        longest=Key(("seq_length",), 0),
        tied=True,
        dropout=("hidden_dropout", 0.0),
        activation="gelu",
        always={"alibi": True, "embedding_norm": True},
        not_priced=("the time of the norm behind the embedding",),
    ),
    "cohere": ConfigFacts(left_out={"logit_scale": 0.0625}, **COHERE),
    "cohere2": ConfigFacts(
        left_out=WINDOW | {"logit_scale": 0.0625},
        not_priced=(SOME_ROTATE,),
        windows="turns",
        full_every=Key(("sliding_window_pattern", "_sliding_window_pattern"), 4),
        **COHERE,
    ),
    "falcon": ConfigFacts(
        architecture="falcon",
        gated=False,
        layers=Key(("num_hidden_layers", "n_layer")),
        heads=Key(("num_attention_heads", "n_head")),
        kv_heads=Key(("num_kv_heads", "n_head_kv"), 0),
        ffn=Key(("ffn_hidden_size",), 0),
        ffn_factor=FOUR_TIMES,
        tied=True,
        dropout=("hidden_dropout", 0.0),
        activation="gelu",
        switches=(
            Switch("bias", False, ALL_BIASES),
            Switch("alibi", False, {"alibi": True}),
            Switch("multi_query", True, {"kv_heads": 1}),
            Switch("parallel_attn", True, ONE_NORM),
            Switch(
                "new_decoder_architecture",
                False,
                {
                    "kv_heads": Key(("num_kv_heads", "n_head_kv"), 0),
                    "norms": Key(("num_ln_in_parallel_attn",), 2),
                },
            ),
            Switch("parallel_attn", True, {}, {"norms": 2}),
        ),
    ),
    "gemma": ConfigFacts(architecture="llama", **GEMMA),
    "gemma2": ConfigFacts(
        architecture="llama",
        always={"norms": 4},
        left_out=WINDOW | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
        windows="turns",
        full_every=Key((), 2),
        **GEMMA,
    ),
    "gemma3_text": ConfigFacts(
        architecture="llama",
        always={"norms": 4, "head_norm": True},
        left_out=WINDOW,
        windows="turns",
        full_every=Key(("sliding_window_pattern", "_sliding_window_pattern"), 6),
        **GEMMA,
    ),
    "glm": ConfigFacts(architecture="llama", head_width=128, rotary=0.5, switches=(QKV_BIAS,)),
    "glm4": ConfigFacts(
        architecture="llama", head_width=128, rotary=0.5, always={"norms": 4}, switches=(QKV_BIAS,)
    ),
    "gpt2": ConfigFacts(
        architecture="gpt2",
        gated=False,
        learned=True,
        hidden=Key(("n_embd",)),
        layers=Key(("n_layer",)),
        heads=Key(("n_head",)),
        ffn=Key(("n_inner",), 0),
        longest=Key(("n_positions",), 1024),
        ffn_factor=FOUR_TIMES,
        tied=True,
        dropout=("resid_pdrop", 0.1),
        activation="gelu",
    ),
    "gpt_neox": ConfigFacts(
        architecture="gpt_neox",
        gated=False,
        dropout=("hidden_dropout", 0.0),
        rotary=0.25,
        activation="gelu",
        always={"ffn_bias": True},
        switches=(
            Switch("attention_bias", True, ATTENTION_BIASES),
            Switch("use_parallel_residual", True, {"parallel": True}),
        ),
    ),
    "gptj": ConfigFacts(
        architecture="gptj",
        gated=False,
        hidden=Key(("n_embd", "hidden_size")),
        layers=N_LAYER,
        heads=N_HEAD,
        ffn=Key(("n_inner",), 0),
        longest=Key(("n_positions", "max_position_embeddings"), 2048),
        ffn_factor=FOUR_TIMES,
        dropout=("resid_pdrop", 0.0),
        activation="gelu",
        always=ONE_NORM | {"ffn_bias": True, "head_bias": True},
    ),
    "granite": ConfigFacts(architecture="llama", switches=(ATTENTION_BIAS, MLP_BIAS)),
    "internlm2": ConfigFacts(architecture="internlm2", switches=(Switch("bias", False, ATTENTION_BIASES),)),
    "llama": ConfigFacts(architecture="llama", switches=(ATTENTION_BIAS, MLP_BIAS)),
    "mistral": ConfigFacts(architecture="llama", left_out=WINDOW, windows="all"),
    "mpt": ConfigFacts(
        architecture="mpt",
        gated=False,
        hidden=Key(("d_model", "hidden_size")),
        layers=Key(("n_layers", "num_hidden_layers")),
        heads=Key(("n_heads", "num_attention_heads")),
        ffn=Key((), 0),
        ffn_factor=Key(("expansion_ratio",), 4),
        longest=Key(("max_seq_len",), 0),
        tied=True,
        dropout=("resid_pdrop", 0.0),
        activation="gelu",
        always={"alibi": True},
        required={"no_bias": (True,), "attn_config.alibi": (True,), "attn_config.qk_ln": (False,)},
    ),
    "nemotron": ConfigFacts(
        architecture="starcoder2",
        gated=False,
        rotary=0.5,
        head_width=128,
        activation="relu2",
        switches=(ATTENTION_BIAS, MLP_BIAS),
    ),
    "olmo": ConfigFacts(architecture="olmo", switches=(ATTENTION_BIAS,)),
    "olmo2": ConfigFacts(**OLMO2),
    "olmo3": ConfigFacts(left_out=WINDOW, windows="turns", full_every=Key((), 4), **OLMO2),
    "opt": ConfigFacts(
        architecture="opt",
        gated=False,
        learned=True,
        ffn=Key(("ffn_dim", "intermediate_size")),
        tied=True,
        dropout=("dropout", 0.1),
        activation="relu",
        switches=(Switch("enable_bias", True, ALL_BIASES),),
        more_positions=2,
        required={
            "do_layer_norm_before": (True,),
            "layer_norm_elementwise_affine": (True,),
            "_remove_final_layer_norm": (False,),
        },
        alike={"word_embed_proj_dim": "hidden_size"},
    ),
    "phi": ConfigFacts(
        architecture="phi",
        gated=False,
        dropout=("resid_pdrop", 0.0),
        rotary=0.5,
        activation="gelu",
        always=ONE_NORM | {"head_bias": True},
        required={"qk_layernorm": (False,)},
    ),
    "phi3": ConfigFacts(architecture="llama", dropout=("resid_pdrop", 0.0), windows="all"),
    "qwen2": ConfigFacts(
        architecture="llama", always={"qkv_bias": True}, left_out={"use_sliding_window": False}, windows="last"
    ),
    "qwen3": ConfigFacts(
        architecture="llama",
        head_width=128,
        always={"head_norm": True},
        switches=(ATTENTION_BIAS,),
        left_out={"use_sliding_window": False},
        windows="last",
    ),
    "smollm3": ConfigFacts(
        architecture="llama",
        tied=True,
        switches=(ATTENTION_BIAS, MLP_BIAS),
        left_out={"no_rope_layer_interval": 4, "use_sliding_window": False},
    ),
    "stablelm": ConfigFacts(
        architecture="stablelm",
        dropout=("hidden_dropout", 0.0),
        rotary=0.25,
        switches=(
            Switch("use_qkv_bias", False, {"qkv_bias": True}),
            Switch("use_parallel_residual", False, ONE_NORM),
            Switch("qk_layernorm", False, WIDE_NORMS),
        ),
    ),
    "starcoder2": ConfigFacts(
        architecture="starcoder2",
        gated=False,
        tied=True,
        dropout=("residual_dropout", 0.0),
        activation=GELU,
        switches=(Switch("use_bias", True, ALL_BIASES),),
        windows="all",
    ),
} | EXPERTS
"""By model_type."""

REFUSED = {
    "qwen3_next": "most layers have linear attention",
}
"""Why the layers of a model_type are none that the model `llm` can have. A row of CONFIGS needs that first."""

ROTARY_KEYS = ("partial_rotary_factor", "rotary_pct", "rope_percent")
"""The share of a head's features that is rotated; `rotary_dim` counts them."""
ACTIVATION_KEYS = ("hidden_activation", "hidden_act", "activation_function", "activation")
ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "squared_relu",
    **dict.fromkeys(("gelu", "gelu_new", "gelu_fast", "gelu_python", GELU), "gelu"),
}
"""Names of activations to those of the model `llm`."""
NOT_PRICED = {
    "attn_logit_softcapping": "the soft-capping of attention's scores",
    "final_logit_softcapping": "the soft-capping of logits",
    "clip_qkv": "the clipping of queries, keys and values",
    "no_rope_layer_interval": SOME_ROTATE,
    "logit_scale": "the scale of logits",
    "logits_scaling": "the scale of logits",
    "embedding_multiplier": "the multiplier of the embedding",
    "residual_multiplier": "the multiplier of residuals",
}
"""Keys of which no price knows, where they say more than nothing, in any model."""
