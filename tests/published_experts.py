"""Published language models whose layers differ: experts beside dense layers, windows, latent attention.

Facts, as in `published_configs`, counted in the same way: of Llama 4 without what sees images (871,932,416), of
DeepSeek-V3 without what predicts a further token and without the corrections of its router (14,848), which are no
parameters.
"""

from tests.published_configs import Published, sizes

_DEEPSEEK = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
    "attention_bias": False,
    "tie_word_embeddings": False,
}
_GPT_OSS = {
    "head_dim": 64,
    "attention_bias": True,
    "sliding_window": 128,
    "num_experts_per_tok": 4,
    "tie_word_embeddings": False,
}
_TURNS = ("sliding_attention", "full_attention")
_LLAMA_4 = {
    "head_dim": 128,
    "intermediate_size_mlp": 16384,
    "num_experts_per_tok": 1,
    "attention_chunk_size": 8192,
    "no_rope_layers": [1, 1, 1, 0] * 12,
    "tie_word_embeddings": False,
}
EXPERT_MODELS = (
    Published(
        "deepseek-ai/DeepSeek-V2",
        "deepseek_v2",
        235_741_434_880,
        20_850_769_920,
        sizes(5120, 60, 128, 128, 12288, 102_400, 163_840)
        | {
            "q_lora_rank": 1536,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 1536,
            "n_routed_experts": 160,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
        }
        | _DEEPSEEK,
    ),
    Published(
        "deepseek-ai/DeepSeek-V2-Lite",
        "deepseek_v2",
        15_706_484_224,
        2_451_308_544,
        sizes(2048, 27, 16, 16, 10944, 102_400, 163_840)
        | {
            "q_lora_rank": None,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
        }
        | _DEEPSEEK,
    ),
    Published(
        "deepseek-ai/DeepSeek-V3",
        "deepseek_v3",
        671_026_404_352,
        36_624_596_992,
        sizes(7168, 61, 128, 128, 18432, 129_280, 163_840)
        | {
            "q_lora_rank": 1536,
            "first_k_dense_replace": 3,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "num_nextn_predict_layers": 1,
        }
        | _DEEPSEEK,
    ),
    Published(
        "openai/gpt-oss-120b",
        "gpt_oss",
        116_829_156_672,
        5_131_100_160,
        sizes(2880, 36, 64, 8, 2880, 201_088, 131_072)
        | {"num_local_experts": 128, "layer_types": [*_TURNS] * 18}
        | _GPT_OSS,
    ),
    Published(
        "openai/gpt-oss-20b",
        "gpt_oss",
        20_914_757_184,
        3_607_142_400,
        sizes(2880, 24, 64, 8, 2880, 201_088, 131_072) | {"num_local_experts": 32} | _GPT_OSS,
    ),
    Published(
        "meta-llama/Llama-4-Scout-17B-16E",
        "llama4_text",
        108_641_793_536 - 871_932_416,
        16_137_912_320,
        sizes(5120, 48, 40, 8, 8192, 202_048, 10_485_760)
        | {"num_local_experts": 16, "interleave_moe_layer_step": 1}
        | _LLAMA_4,
    ),
    Published(
        "meta-llama/Llama-4-Maverick-17B-128E",
        "llama4_text",
        401_583_781_376 - 871_932_416,
        16_149_708_800,
        sizes(5120, 48, 40, 8, 8192, 202_048, 1_048_576)
        | {"num_local_experts": 128, "interleave_moe_layer_step": 2}
        | _LLAMA_4,
    ),
    Published(
        "Qwen/Qwen1.5-MoE-A2.7B",
        "qwen2_moe",
        14_315_784_192,
        2_377_760_768,
        sizes(2048, 24, 16, 16, 5632, 151_936, 8192)
        | {
            "decoder_sparse_step": 1,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "use_sliding_window": False,
            "sliding_window": 32768,
            "max_window_layers": 21,
            "tie_word_embeddings": False,
        },
    ),
)
