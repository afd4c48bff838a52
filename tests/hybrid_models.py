"""Hybrid language models for tests: the figures of published config.json files."""

from typing import Any

NANO_PATTERN = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
NANO: dict[str, Any] = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 1856,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "chunk_size": 128,
    "use_conv_bias": True,
    "mamba_proj_bias": False,
    "vocab_size": 131072,
    "max_position_embeddings": 262144,
    "tie_word_embeddings": False,
    "mlp_hidden_act": "relu2",
    "hybrid_override_pattern": NANO_PATTERN,
    "torch_dtype": "bfloat16",
}
"""nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16."""
CODESTRAL_MAMBA: dict[str, Any] = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "chunk_size": 256,
    "vocab_size": 32768,
    "tie_word_embeddings": False,
}
"""mistralai/Mamba-Codestral-7B-v0.1, with 7,285,403,648 parameters by its model card."""
TINY_HYBRID: dict[str, Any] = {
    "architecture": "nemotron_h",
    "layers": 8,
    "hybrid": "memadmem",
    "hidden": 256,
    "heads": 8,
    "kv_heads": 2,
    "head": 64,
    "ffn": 192,
    "dense_ffn": 512,
    "shared_ffn": 320,
    "experts": 8,
    "active": 2,
    "activation": "squared_relu",
    "mamba_heads": 8,
    "mamba_groups": 2,
    "mamba_state": 32,
    "vocab": 20000,
    "sequence": 256,
}


def nano_elements(active: int) -> tuple[int, int, int, int]:
    """Of Nemotron 3 Nano, counted from its sizes: all Mamba-2 layers, all with so many experts each, all of
    attention, and both tables with the last norm.
    """
    h, vocab = 2688, 131_072
    heads, head, groups, state, kernel = 64, 64, 8, 128, 4
    inner, shared = heads * head, groups * state
    mamba = h  # the norm
    mamba += h * (inner + inner + shared + shared + heads) + inner * h  # z, x, B, C, steps; the last product
    mamba += (inner + 2 * shared) * kernel + (inner + 2 * shared)  # the convolution and its bias
    mamba += 3 * heads + inner  # decay, skip, bias of the steps; the gated norm
    experts = h + h * 128 + active * 2 * h * 1856 + 2 * h * 3712
    attention = h + h * 32 * 128 + 2 * h * 2 * 128 + 32 * 128 * h
    return 23 * mamba, 23 * experts, 6 * attention, 2 * vocab * h + h
