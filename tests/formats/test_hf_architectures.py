"""The table of model types: parameters and FLOP of published models, what is said of them, and what is refused."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipebench.costs.shapes.flops import forward_flops
from pipebench.costs.shapes.transformer import HEAD, LAYER, POSITIONS
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.formats.hf_architectures import CONFIGS, REFUSED
from pipebench.formats.hf_config import ModelConfig, read_config
from pipebench_models.llm_options import ARCHITECTURES, LLMOptions
from tests.models.zoo import model
from tests.published_configs import PUBLISHED as DENSE
from tests.published_configs import Published
from tests.published_experts import EXPERT_MODELS

PUBLISHED = (*DENSE, *EXPERT_MODELS)
FP32_BYTES = 4
SEQUENCE = 512
NAMES = [each.name for each in PUBLISHED]


def read(folder: Path, published: Published, sequence: int = SEQUENCE, **changes: Any) -> ModelConfig:
    said = {"model_type": published.model_type} | published.keys | changes
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in said.items() if value is not ...}))
    return read_config(str(path), sequence)


def graph(config: ModelConfig) -> OperatorGraph:
    options = msgspec.convert(config.options, LLMOptions, strict=False)
    return model("llm", **msgspec.to_builtins(options))


def named(name: str) -> Published:
    return next(each for each in PUBLISHED if each.name.endswith(name))


def parameters(made: OperatorGraph) -> int:
    return sum(parameter.bytes for parameter in made.parameters) // FP32_BYTES


@pytest.mark.parametrize(
    ("published", "name"),
    [
        ("DeepSeek-V3", "deepseek_v3-61x7168"),
        ("Qwen3-30B-A3B", "qwen3_moe-48x2048"),
        ("Mixtral-8x7B-v0.1", "mixtral-32x4096"),
    ],
)
def test_a_model_is_named_by_its_model_type(tmp_path: Path, published: str, name: str) -> None:
    assert graph(read(tmp_path, named(published))).name == name


@pytest.mark.parametrize("published", PUBLISHED, ids=NAMES)
def test_parameters_are_those_of_the_checkpoint(tmp_path: Path, published: Published) -> None:
    assert parameters(graph(read(tmp_path, published))) == published.parameters


def core_flops(layer: Operator) -> float:
    """Two products for each pair of a query and a key that it sees, of a token and itself a half."""
    said, heads, head = layer.attributes, layer.dims["heads"], layer.dims["head"]
    window, chunk = said.get("window", SEQUENCE), said.get("chunk", SEQUENCE)
    pairs = sum(min(window, token % chunk + 1) for token in range(SEQUENCE)) - SEQUENCE / 2
    return 2 * pairs * heads * (head + said.get("latent_value", head))


@pytest.mark.parametrize("published", PUBLISHED, ids=NAMES)
def test_flops_are_two_a_weight_and_attention(tmp_path: Path, published: Published) -> None:
    made = graph(read(tmp_path, published))
    core = sum(core_flops(operator) for operator in made.operators if operator.kind == LAYER)
    counted = sum(forward_flops(operator) for operator in made.operators if operator.kind in (LAYER, HEAD))
    assert counted == 2 * SEQUENCE * published.products + core


def test_every_model_type_has_a_published_model() -> None:
    """Those of hybrid models are in test_hybrid_configs."""
    assert {each.model_type for each in PUBLISHED} | {"bert", "mamba2", "nemotron_h"} == CONFIGS.keys()


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_the_table_and_the_model_agree_on_an_architecture(kind: str) -> None:
    facts = CONFIGS[kind]
    built = next(each for name, each in ARCHITECTURES.items() if name == facts.architecture)
    assert (facts.gated, facts.learned) == (built.gated, built.learned)
    assert (facts.experts is not None) == built.routed or kind == "mamba2"  # a nemotron_h of one kind of layer


DIFFERENT = {"window", "chunk", "windowed", "routed", "dense_ffn", "shared_ffn", "shared_gate"}
MAVERICK = {"dense_ffn": "16384", "shared_ffn": "8192"}
QWEN_2 = {"shared_ffn": "5632", "shared_gate": "true"}


@pytest.mark.parametrize(
    ("name", "changes", "options"),
    [
        ("gpt-oss-120b", {}, {"window": "128", "windowed": "wf"}),
        ("gpt-oss-20b", {}, {"window": "128", "windowed": "wf"}),
        ("gpt-oss-20b", {"sliding_window": 512}, {}),
        ("DeepSeek-V3", {}, {"routed": "d3e58", "dense_ffn": "18432", "shared_ffn": "2048"}),
        ("DeepSeek-V2-Lite", {}, {"routed": "de26", "dense_ffn": "10944", "shared_ffn": "2816"}),
        ("DeepSeek-V2-Lite", {"first_k_dense_replace": 0}, {"shared_ffn": "2816"}),
        ("Qwen1.5-MoE-A2.7B", {}, QWEN_2),
        ("Qwen1.5-MoE-A2.7B", {"decoder_sparse_step": 2}, {"routed": "de", "dense_ffn": "5632"} | QWEN_2),
        ("Qwen3-30B-A3B", {"mlp_only_layers": [0, 1]}, {"routed": "d2e46", "dense_ffn": "6144"}),
        ("Maverick-17B-128E", {}, {"routed": "de"} | MAVERICK),
        ("Maverick-17B-128E", {"moe_layers": [0, 47]}, {"routed": "ed46"} | MAVERICK),
        (
            "Scout-17B-16E",
            {"attention_chunk_size": 256},
            {"chunk": "256", "windowed": "w3f", "shared_ffn": "8192"},
        ),
        (
            "Scout-17B-16E",
            {"attention_chunk_size": 256, "no_rope_layers": ...},
            {"chunk": "256", "windowed": "w3f", "shared_ffn": "8192"},
        ),
        ("Scout-17B-16E", {"attention_chunk_size": 256, "no_rope_layers": [0] * 48}, {"shared_ffn": "8192"}),
        ("gemma-3-1b-pt", {"sliding_window": 64}, {"window": "64", "windowed": "w5f"}),
        ("gemma-2-2b", {"sliding_window": 64}, {"window": "64", "windowed": "wf"}),
        ("command-r7b-12-2024", {"sliding_window": 64}, {"window": "64", "windowed": "w3f"}),
        (
            "Qwen2.5-0.5B",
            {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 20},
            {"window": "64", "windowed": "f20w4"},
        ),
        ("Qwen2.5-0.5B", {"sliding_window": 64, "use_sliding_window": ...}, {}),
        ("starcoder2-3b", {"sliding_window": 64}, {"window": "64"}),
        ("starcoder2-3b", {"sliding_window": 64, "layer_types": ["full_attention"] * 30}, {}),
        ("starcoder2-3b", {"sliding_window": 512}, {}),
    ],
)
def test_layers_that_differ(tmp_path: Path, name: str, changes: dict[str, Any], options: dict[str, str]) -> None:
    made = read(tmp_path, named(name), **changes).options
    assert {key: value for key, value in made.items() if key in DIFFERENT} == options


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("gemma-2-2b", "not priced: the soft-capping of attention's scores, the soft-capping of logits"),
        ("command-r-v01", "not priced: the scale of logits"),
        ("SmolLM3-3B", "not priced: that some layers rotate nothing"),
        ("mpt-7b", "not priced: ALiBi's distances"),
        ("bloom-7b1", "not priced: ALiBi's distances, the time of the norm behind the embedding"),
        ("OLMo-2-1124-7B", "not priced: the exchange of norms over all heads under tensor parallelism"),
        ("phi-2", "40 % of a head's features are rotated; the price is of rotating all"),
        ("gpt-j-6b", "25 % of a head's features are rotated; the price is of rotating all"),
        (
            "pythia-6.9b",
            "attention and feed-forward part both read the layer's input, with 2 norms a layer; under tensor "
            "parallelism two all-reduces are priced each way, where a framework that adds the results first needs "
            "one",
        ),
        (
            "Qwen3-30B-A3B",
            "each tensor-parallel group holds all 128 experts (--ep shares them out), a token passes 8, tokens "
            "spread evenly; under --framework experts run one after the other; routing is not priced",
        ),
    ],
)
def test_what_is_not_priced_is_said(tmp_path: Path, name: str, note: str) -> None:
    assert note in read(tmp_path, named(name)).notes


def test_what_a_file_leaves_out_is_as_the_library_has_it(tmp_path: Path) -> None:
    gemma = read(tmp_path, named("gemma-2-2b"), 8192, sliding_window=..., head_dim=..., tie_word_embeddings=...)
    assert (gemma.options["head"], gemma.options["tied"]) == ("256", "true")
    assert "tokens of 13 of 26 layers see the last 4096 tokens" in gemma.notes
    assert "window" not in read(tmp_path, named("gemma-2-2b"), 8192, sliding_window=None).options


def test_a_window_of_layers_that_no_key_names_is_said_not_to_be_priced(tmp_path: Path) -> None:
    smol = read(tmp_path, named("SmolLM3-3B"), 4096, sliding_window=1024, use_sliding_window=True)
    assert "the sliding window of 1024 tokens is not priced: attention sees all 4096" in smol.notes
    assert "window" not in smol.options


def test_what_predicts_further_tokens_is_said_to_be_left_out(tmp_path: Path) -> None:
    note = "what predicts further tokens (num_nextn_predict_layers) is left out, as the library leaves it out"
    assert note in read(tmp_path, named("DeepSeek-V3")).notes
    assert note not in read(tmp_path, named("DeepSeek-V2-Lite")).notes


@pytest.mark.parametrize(
    ("name", "changes", "options"),
    [
        ("Llama-3.2-1B", {"attention_bias": True}, {"qkv_bias", "out_bias"}),
        ("Llama-3.2-1B", {"mlp_bias": True}, {"ffn_bias"}),
        ("Qwen3-8B", {"attention_bias": True}, {"qkv_bias", "out_bias"}),
        ("internlm2-7b", {"bias": True}, {"qkv_bias", "out_bias"}),
        ("falcon-7b", {"parallel_attn": False}, set()),
        ("pythia-6.9b", {"use_parallel_residual": False}, {"qkv_bias", "out_bias", "ffn_bias"}),
    ],
)
def test_switches(tmp_path: Path, name: str, changes: dict[str, Any], options: set[str]) -> None:
    made = read(tmp_path, named(name), **changes).options
    assert {each for each in ("qkv_bias", "out_bias", "ffn_bias", "parallel", "norms") if each in made} == options


def test_rotated_features_where_newer_files_say_them(tmp_path: Path) -> None:
    said = {"partial_rotary_factor": ..., "rope_parameters": {"partial_rotary_factor": 0.4, "rope_theta": 1e4}}
    assert read(tmp_path, named("phi-2"), **said).options["rotary_percent"] == "40"


def test_positions_that_opt_has_and_does_not_use(tmp_path: Path) -> None:
    made = graph(read(tmp_path, named("opt-125m"), 2048))
    (positions,) = (operator for operator in made.operators if operator.kind == POSITIONS)
    assert (positions.path, positions.dims["rows"]) == ("model.decoder.embed_positions", 2050)
    with pytest.raises(PipebenchError, match="2049 tokens a sample are more than the 2048 positions") as caught:
        read(tmp_path, named("opt-125m"), 2049)
    assert caught.value.hint == "use --seq 2048 or less"


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("opt-125m", {"do_layer_norm_before": False}, "do_layer_norm_before is False, only True can be priced"),
        ("opt-125m", {"word_embed_proj_dim": 512}, "word_embed_proj_dim is 512, only 768 can be priced"),
        ("phi-2", {"qk_layernorm": True}, "qk_layernorm is True, only False can be priced"),
        ("mpt-7b", {"attn_config": {"qk_ln": True}}, "attn_config.qk_ln is True, only False can be priced"),
        ("Qwen3-30B-A3B", {"mlp_only_layers": 3}, "mlp_only_layers is 3, it must be a list of numbers of layers"),
        ("Qwen3-30B-A3B", {"decoder_sparse_step": 49}, "no layer has experts"),
        ("DeepSeek-V3", {"attention_bias": True}, "attention_bias is True, only False can be priced"),
        (
            "gpt-oss-120b",
            {"layer_types": ["linear_attention"] * 36},
            "layer_types has 'linear_attention', only full",
        ),
        ("gpt-oss-120b", {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 36 layers"),
        ("phi-2", {"partial_rotary_factor": 1.5}, "the share of rotated features is 1.5"),
        ("Llama-3.2-1B", {"attention_bias": "yes"}, "attention_bias is 'yes', it must be true or false"),
    ],
)
def test_other_layers_are_refused(tmp_path: Path, name: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        read(tmp_path, named(name), **changes)


def test_layers_that_no_option_expresses_are_refused_with_what_they_are(tmp_path: Path) -> None:
    assert not REFUSED.keys() & CONFIGS.keys()
    with pytest.raises(
        PipebenchError, match="qwen3_next cannot be priced: most layers have linear attention"
    ) as e:
        read(tmp_path, Published("", "qwen3_next", 0, 0, {}))
    assert e.value.hint == "profile the model and use --profile"


def test_an_unknown_activation_is_said(tmp_path: Path) -> None:
    assert (
        "the activation 'xielu' is priced as any other"
        in read(tmp_path, named("Llama-3.2-1B"), hidden_act="xielu").notes
    )


def test_a_language_model_inside_another_model_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}})
    )
    with pytest.raises(PipebenchError, match="unknown architecture 'gemma3'") as caught:
        read_config(str(tmp_path / "config.json"))
    assert caught.value.hint.startswith(
        "its text_config is a gemma3_text, which a file of its own may hold; valid: "
    )
