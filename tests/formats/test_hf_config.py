"""config.json files: what is read, and what is said of those that cannot be."""

from pathlib import Path
from typing import Any

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.formats.hf_architectures import CONFIGS
from pipebench.formats.hf_config import read_config
from pipebench_models.llm_options import LLMOptions
from tests.language_models import LLAMA_70B_OPTIONS, config

GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
    "num_key_value_heads": None,
    "tie_word_embeddings": None,
    "torch_dtype": None,
}


def options(path: str, sequence: int | None = None) -> dict[str, Any]:
    import msgspec

    made = msgspec.convert(read_config(path, sequence).options, LLMOptions, strict=False)
    return msgspec.to_builtins(made)


def test_llama(tmp_path: Path) -> None:
    read = read_config(config(tmp_path))
    assert read.precision == "bf16"
    assert read.notes == ("4096 tokens a sample, the most that the model takes (--seq)",)
    assert LLAMA_70B_OPTIONS.items() <= options(config(tmp_path)).items()


def test_gpt2_is_tied_with_dropout_and_four_times_as_wide(tmp_path: Path) -> None:
    made = options(config(tmp_path, **GPT2), 512)
    assert made["architecture"] == "gpt2"
    assert (made["ffn"], made["sequence"], made["positions"]) == (3072, 512, 1024)
    assert made["tied"]
    assert made["dropout"]
    assert read_config(config(tmp_path, **GPT2), 512).precision is None


def test_bert(tmp_path: Path) -> None:
    made = options(config(tmp_path, model_type="bert", hidden_dropout_prob=0.0, tie_word_embeddings=None))
    assert (made["architecture"], made["tied"], made["dropout"]) == ("bert", True, False)


def test_mixtral(tmp_path: Path) -> None:
    made = options(config(tmp_path, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2))
    assert (made["experts"], made["active"]) == (8, 2)


def test_mistral_is_a_llama(tmp_path: Path) -> None:
    assert options(config(tmp_path, model_type="mistral")) == options(config(tmp_path)) | {"model_type": "mistral"}


def test_qwen2_is_a_llama_with_biases_of_query_key_and_value(tmp_path: Path) -> None:
    made = options(config(tmp_path, model_type="qwen2", sliding_window=131072, use_sliding_window=False))
    assert made == options(config(tmp_path)) | {"model_type": "qwen2", "qkv_bias": True}


def test_qwen3_is_a_llama_with_a_width_of_heads_and_norms_of_them(tmp_path: Path) -> None:
    sizes = {"hidden_size": 5120, "num_attention_heads": 64, "head_dim": 128}
    made = options(config(tmp_path, model_type="qwen3", **sizes))
    assert made == options(config(tmp_path, **sizes)) | {"model_type": "qwen3", "head_norm": True}
    assert made["head"] == 128


@pytest.mark.parametrize("kind", ["gemma3", "qwen3_vl", "qwen2_vl"])
def test_another_architecture_is_told_what_is_known_and_what_can_be_done(tmp_path: Path, kind: str) -> None:
    with pytest.raises(PipebenchError, match=f"unknown architecture '{kind}'") as caught:
        read_config(config(tmp_path, model_type=kind))
    assert caught.value.hint == (
        f"valid: {', '.join(sorted(CONFIGS))}; a model with the layers of a Llama may be given with model_type "
        "llama, for others profile the model and use --profile"
    )


def test_more_tokens_than_the_model_takes(tmp_path: Path) -> None:
    assert "more than the model's 4096" in read_config(config(tmp_path), 8192).notes[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_hidden_layers": 2001}, "num_hidden_layers is 2001, it must be a whole number from 1 to 2000"),
        ({"model_type": "rwkv"}, "unknown architecture 'rwkv'.*llama, llama4_text, mamba2, mistral, mixtral"),
        ({"model_type": "mamba"}, "mamba cannot be priced: its scan"),
        ({"model_type": "lama"}, "did you mean 'llama'"),
        ({"model_type": None}, "the key 'model_type' is missing"),
        ({"model_type": ["llama"]}, "unknown architecture \\['llama'\\]"),
        ({"hidden_size": None}, "'hidden_size' is missing"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"hidden_size": "big"}, "hidden_size is 'big'"),
        ({"num_hidden_layers": 2.5}, "num_hidden_layers is 2.5"),
        ({"num_attention_heads": True}, "num_attention_heads is True"),
        ({"max_position_embeddings": None}, "give it with --seq"),
    ],
)
def test_bad_configs(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason) as caught:
        read_config(config(tmp_path, **changes))
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a config.json"),
        (b"[1]", "not a config.json"),
        (b'{"model_type": ', "not a config.json"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"{" + b" " * 2**20 + b"}", "at most"),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(PipebenchError, match=reason):
        read_config(str(path))


def test_a_sliding_window_that_is_shorter_than_a_sample_is_priced(tmp_path: Path) -> None:
    path = config(tmp_path, model_type="mistral", sliding_window=1024)
    read = read_config(path, 4096)
    assert (read.options["window"], "windowed" in read.options) == ("1024", False)
    assert "tokens of 80 of 80 layers see the last 1024 tokens" in read.notes
    assert (read_config(path, 1024).notes, "window" in read_config(path, 1024).options) == ((), False)
