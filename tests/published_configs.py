"""Published language models: keys of their config.json, and how many parameters their checkpoints have.

Facts. Counts are those of the model that the library transformers (5.24) builds of these keys, each tensor once;
that of internlm2 is summed by hand, tensor by tensor. Some cards count otherwise: that of falcon-7b a tied table
twice, those of Stable LM 2 what the program has that trained it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Published:
    """parameters: of the checkpoint, a tied table once. products: weights by which each token is multiplied: all
    matrices, the head's too, of experts those that a token passes; no tables.
    """

    name: str
    model_type: str
    parameters: int
    products: int
    keys: dict[str, Any]


def sizes(
    hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocab: int, longest: int
) -> dict[str, Any]:
    """The keys that most have. kv_heads: 0 where there is none."""
    said = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_position_embeddings": longest,
    }
    return {key: value for key, value in said.items() if value}


PUBLISHED = (
    Published(
        "bigscience/bloom-560m",
        "bloom",
        559_214_592,
        558_891_008,
        {"hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880},
    ),
    Published(
        "bigscience/bloom-7b1",
        "bloom",
        7_069_016_064,
        7_067_402_240,
        {"hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880},
    ),
    Published(
        "CohereForAI/c4ai-command-r-plus",
        "cohere",
        103_810_674_688,
        103_809_024_000,
        sizes(12288, 64, 96, 8, 33792, 256_000, 131_072) | {"use_qk_norm": True},
    ),
    Published(
        "CohereForAI/c4ai-command-r-v01",
        "cohere",
        34_980_831_232,
        34_980_495_360,
        sizes(8192, 40, 64, 64, 22528, 256_000, 131_072) | {"use_qk_norm": False},
    ),
    Published(
        "CohereForAI/c4ai-command-r7b-12-2024",
        "cohere2",
        8_028_033_024,
        8_027_897_856,
        sizes(4096, 32, 32, 8, 14336, 256_000, 132_096),
    ),
    Published(
        "tiiuae/falcon-11B",
        "falcon",
        11_102_822_400,
        10_835_984_384,
        {
            "hidden_size": 4096,
            "num_hidden_layers": 60,
            "num_attention_heads": 32,
            "num_kv_heads": 8,
            "vocab_size": 65024,
            "new_decoder_architecture": True,
            "num_ln_in_parallel_attn": 1,
            "parallel_attn": True,
            "bias": False,
            "alibi": False,
            "ffn_hidden_size": 16384,
            "tie_word_embeddings": False,
        },
    ),
    Published(
        "tiiuae/falcon-40b",
        "falcon",
        41_303_293_952,
        41_301_311_488,
        {
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "vocab_size": 65024,
            "multi_query": True,
            "new_decoder_architecture": True,
            "parallel_attn": True,
            "bias": False,
            "alibi": False,
        },
    ),
    Published(
        "tiiuae/falcon-7b",
        "falcon",
        6_921_720_704,
        6_921_420_800,
        {
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "vocab_size": 65024,
            "multi_query": True,
            "new_decoder_architecture": False,
            "parallel_attn": True,
            "bias": False,
            "alibi": False,
        },
    ),
    Published(
        "tiiuae/falcon-rw-1b",
        "falcon",
        1_311_625_216,
        1_310_982_144,
        {
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "vocab_size": 50304,
            "multi_query": False,
            "new_decoder_architecture": False,
            "parallel_attn": False,
            "bias": True,
            "alibi": True,
        },
    ),
    Published(
        "google/gemma-2b",
        "gemma",
        2_506_172_416,
        2_506_096_640,
        sizes(2048, 18, 8, 1, 16384, 256_000, 8192) | {"head_dim": 256},
    ),
    Published(
        "google/gemma-7b",
        "gemma",
        8_537_680_896,
        8_537_505_792,
        sizes(3072, 28, 16, 16, 24576, 256_000, 8192) | {"head_dim": 256},
    ),
    Published(
        "google/gemma-2-27b",
        "gemma2",
        27_227_128_320,
        27_226_275_840,
        sizes(4608, 46, 32, 16, 36864, 256_000, 8192) | {"head_dim": 128},
    ),
    Published(
        "google/gemma-2-2b",
        "gemma2",
        2_614_341_888,
        2_614_099_968,
        sizes(2304, 26, 8, 4, 9216, 256_000, 8192)
        | {
            "head_dim": 256,
            "sliding_window": 4096,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
    ),
    Published(
        "google/gemma-3-1b-pt",
        "gemma3_text",
        999_885_952,
        999_751_680,
        sizes(1152, 26, 4, 1, 6912, 262_144, 32768) | {"head_dim": 256, "sliding_window": 512},
    ),
    Published(
        "THUDM/glm-4-9b-hf",
        "glm",
        9_399_951_360,
        8_778_678_272,
        sizes(4096, 40, 32, 2, 13696, 151_552, 131_072)
        | {"head_dim": 128, "attention_bias": True, "tie_word_embeddings": False, "partial_rotary_factor": 0.5},
    ),
    Published(
        "THUDM/GLM-4-9B-0414",
        "glm4",
        9_400_279_040,
        8_778_678_272,
        sizes(4096, 40, 32, 2, 13696, 151_552, 32768)
        | {"head_dim": 128, "attention_bias": True, "tie_word_embeddings": False, "partial_rotary_factor": 0.5},
    ),
    Published(
        "openai-community/gpt2",
        "gpt2",
        124_439_808,
        123_532_032,
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
    ),
    Published(
        "EleutherAI/gpt-neox-20b",
        "gpt_neox",
        20_554_567_680,
        20_241_186_816,
        sizes(6144, 44, 64, 0, 24576, 50432, 2048)
        | {"use_parallel_residual": True, "rotary_pct": 0.25, "tie_word_embeddings": False},
    ),
    Published(
        "EleutherAI/pythia-6.9b",
        "gpt_neox",
        6_857_302_016,
        6_649_020_416,
        sizes(4096, 32, 32, 0, 16384, 50432, 2048)
        | {"use_parallel_residual": True, "rotary_pct": 0.25, "tie_word_embeddings": False},
    ),
    Published(
        "EleutherAI/gpt-j-6b",
        "gptj",
        6_050_882_784,
        5_843_582_976,
        {
            "n_embd": 4096,
            "n_layer": 28,
            "n_head": 16,
            "n_positions": 2048,
            "vocab_size": 50400,
            "rotary_dim": 64,
            "tie_word_embeddings": False,
        },
    ),
    Published(
        "ibm-granite/granite-3.0-8b-base",
        "granite",
        8_170_848_256,
        8_170_516_480,
        sizes(4096, 40, 32, 8, 12800, 49155, 4096) | {"tie_word_embeddings": True},
    ),
    Published(
        "internlm/internlm2-7b",
        "internlm2",
        7_737_708_544,
        7_358_382_080,
        sizes(4096, 32, 32, 8, 14336, 92544, 32768) | {"bias": False, "tie_word_embeddings": False},
    ),
    Published(
        "ibm-granite/granite-3b-code-base",
        "llama",
        3_482_503_680,
        3_481_272_320,
        sizes(2560, 32, 32, 32, 10240, 49152, 2048)
        | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    ),
    Published(
        "meta-llama/Llama-3.2-1B",
        "llama",
        1_235_814_400,
        1_235_746_816,
        sizes(2048, 16, 32, 8, 8192, 128_256, 131_072) | {"head_dim": 64, "tie_word_embeddings": True},
    ),
    Published(
        "mistralai/Mistral-7B-v0.1",
        "mistral",
        7_241_732_096,
        7_110_393_856,
        sizes(4096, 32, 32, 8, 14336, 32000, 32768) | {"tie_word_embeddings": False},
    ),
    Published(
        "mistralai/Mistral-Nemo-Base-2407",
        "mistral",
        12_247_782_400,
        11_576_279_040,
        sizes(5120, 40, 32, 8, 14336, 131_072, 131_072) | {"head_dim": 128, "tie_word_embeddings": False},
    ),
    Published(
        "mistralai/Mixtral-8x7B-v0.1",
        "mixtral",
        46_702_792_704,
        12_748_587_008,
        sizes(4096, 32, 32, 8, 14336, 32000, 32768)
        | {"num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False},
    ),
    Published(
        "mosaicml/mpt-30b",
        "mpt",
        29_957_200_896,
        29_956_505_600,
        {
            "d_model": 7168,
            "n_layers": 48,
            "n_heads": 64,
            "expansion_ratio": 4,
            "vocab_size": 50432,
            "max_seq_len": 8192,
            "no_bias": True,
        },
    ),
    Published(
        "mosaicml/mpt-7b",
        "mpt",
        6_649_286_656,
        6_649_020_416,
        {
            "d_model": 4096,
            "n_layers": 32,
            "n_heads": 32,
            "expansion_ratio": 4,
            "vocab_size": 50432,
            "max_seq_len": 2048,
            "no_bias": True,
        },
    ),
    Published(
        "nvidia/Minitron-8B-Base",
        "nemotron",
        8_271_699_968,
        7_222_591_488,
        sizes(4096, 32, 48, 8, 16384, 256_000, 4096)
        | {"head_dim": 128, "partial_rotary_factor": 0.5, "tie_word_embeddings": False},
    ),
    Published(
        "allenai/OLMo-1B-hf",
        "olmo",
        1_176_764_416,
        1_176_764_416,
        sizes(2048, 16, 16, 16, 8192, 50304, 2048) | {"tie_word_embeddings": True},
    ),
    Published(
        "allenai/OLMo-7B-hf",
        "olmo",
        6_888_095_744,
        6_682_050_560,
        sizes(4096, 32, 32, 32, 11008, 50304, 2048) | {"tie_word_embeddings": False},
    ),
    Published(
        "allenai/OLMo-2-0325-32B",
        "olmo2",
        32_234_279_936,
        31_719_424_000,
        sizes(5120, 64, 40, 8, 27648, 100_352, 4096) | {"tie_word_embeddings": False},
    ),
    Published(
        "allenai/OLMo-2-1124-7B",
        "olmo2",
        7_298_617_344,
        6_887_047_168,
        sizes(4096, 32, 32, 32, 11008, 100_352, 4096) | {"tie_word_embeddings": False},
    ),
    Published(
        "allenai/Olmo-3-1025-7B",
        "olmo3",
        7_298_011_136,
        6_886_744_064,
        sizes(4096, 32, 32, 32, 11008, 100_278, 65536) | {"tie_word_embeddings": False},
    ),
    Published(
        "allenai/OLMoE-1B-7B-0924",
        "olmoe",
        6_919_161_856,
        1_178_861_568,
        sizes(2048, 16, 16, 16, 1024, 50304, 4096)
        | {"num_experts": 64, "num_experts_per_tok": 8, "tie_word_embeddings": False},
    ),
    Published(
        "facebook/opt-125m",
        "opt",
        125_239_296,
        123_543_552,
        {
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 768,
            "do_layer_norm_before": True,
        },
    ),
    Published(
        "facebook/opt-6.7b",
        "opt",
        6_658_473_984,
        6_648_365_056,
        {
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "ffn_dim": 16384,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 4096,
            "do_layer_norm_before": True,
        },
    ),
    Published(
        "microsoft/phi-2",
        "phi",
        2_779_683_840,
        2_647_654_400,
        sizes(2560, 32, 32, 0, 10240, 51200, 2048)
        | {"partial_rotary_factor": 0.4, "tie_word_embeddings": False, "resid_pdrop": 0.1},
    ),
    Published(
        "microsoft/Phi-3-mini-4k-instruct",
        "phi3",
        3_821_079_552,
        3_722_379_264,
        sizes(3072, 32, 32, 32, 8192, 32064, 4096) | {"tie_word_embeddings": False},
    ),
    Published(
        "microsoft/phi-4",
        "phi3",
        14_659_507_200,
        14_145_290_240,
        sizes(5120, 40, 40, 10, 17920, 100_352, 16384) | {"tie_word_embeddings": False},
    ),
    Published(
        "microsoft/Phi-4-mini-instruct",
        "phi3",
        3_836_021_760,
        3_835_822_080,
        sizes(3072, 32, 24, 8, 8192, 200_064, 131_072)
        | {"tie_word_embeddings": True, "partial_rotary_factor": 0.75},
    ),
    Published(
        "Qwen/Qwen2.5-0.5B",
        "qwen2",
        494_032_768,
        493_961_216,
        sizes(896, 24, 14, 2, 4864, 151_936, 32768) | {"tie_word_embeddings": True},
    ),
    Published(
        "Qwen/Qwen3-8B",
        "qwen3",
        8_190_735_360,
        7_568_097_280,
        sizes(4096, 36, 32, 8, 12288, 151_936, 40960)
        | {"head_dim": 128, "attention_bias": False, "tie_word_embeddings": False},
    ),
    Published(
        "Qwen/Qwen3-30B-A3B",
        "qwen3_moe",
        30_532_122_624,
        3_041_656_832,
        sizes(2048, 48, 32, 4, 6144, 151_936, 40960)
        | {
            "head_dim": 128,
            "moe_intermediate_size": 768,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "tie_word_embeddings": False,
        },
    ),
    Published(
        "HuggingFaceTB/SmolLM3-3B",
        "smollm3",
        3_075_098_624,
        3_074_949_120,
        sizes(2048, 36, 16, 4, 11008, 128_256, 65536)
        | {"tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False},
    ),
    Published(
        "stabilityai/stablelm-2-12b",
        "stablelm",
        12_143_185_920,
        11_628_707_840,
        sizes(5120, 40, 32, 8, 13824, 100_352, 4096)
        | {
            "tie_word_embeddings": False,
            "use_qkv_bias": False,
            "partial_rotary_factor": 0.25,
            "use_parallel_residual": True,
            "qk_layernorm": True,
        },
    ),
    Published(
        "stabilityai/stablelm-2-1_6b",
        "stablelm",
        1_644_515_328,
        1_438_646_272,
        sizes(2048, 24, 32, 32, 5632, 100_352, 4096)
        | {"tie_word_embeddings": False, "use_qkv_bias": True, "partial_rotary_factor": 0.25},
    ),
    Published(
        "stabilityai/stablelm-3b-4e1t",
        "stablelm",
        2_795_443_200,
        2_666_332_160,
        sizes(2560, 32, 32, 32, 6912, 50304, 4096)
        | {"tie_word_embeddings": False, "use_qkv_bias": False, "partial_rotary_factor": 0.25},
    ),
    Published(
        "bigcode/starcoder2-15b",
        "starcoder2",
        15_957_889_024,
        15_653_142_528,
        sizes(6144, 40, 48, 4, 24576, 49152, 16384)
        | {"use_bias": True, "sliding_window": 4096, "tie_word_embeddings": False},
    ),
    Published(
        "bigcode/starcoder2-3b",
        "starcoder2",
        3_030_371_328,
        3_029_336_064,
        sizes(3072, 30, 24, 2, 12288, 49152, 16384) | {"use_bias": True, "sliding_window": 4096},
    ),
)
