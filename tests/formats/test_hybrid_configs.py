"""config.json of hybrid models: the part of each layer, in the words of older and of newer files, and refusals."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.formats.hf_config import ModelConfig, read_config
from pipebench_models.llm_options import LLMOptions
from tests.hybrid_models import CODESTRAL_MAMBA, NANO, NANO_PATTERN, nano_elements
from tests.models.zoo import model

WORDS = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
NEWER = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}


def read(folder: Path, said: dict[str, Any], **changes: Any) -> ModelConfig:
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in (said | changes).items() if value is not ...}))
    return read_config(str(path), 4096)


def graph(config: ModelConfig) -> OperatorGraph:
    return model("llm", **msgspec.to_builtins(msgspec.convert(config.options, LLMOptions, strict=False)))


def parameters(made: OperatorGraph) -> int:
    return sum(parameter.bytes for parameter in made.parameters) // 4


def test_nemotron_3_nano(tmp_path: Path) -> None:
    config = read(tmp_path, NANO)
    assert config.precision == "bf16"
    made = graph(config)
    assert made.name == "nemotron_h-52x2688"
    assert parameters(made) == sum(nano_elements(128))
    said = {op.attributes.get("squared_relu", 0) for op in made.operators if op.kind == "feed_forward_layer"}
    assert said == {1}
    assert any("Mamba-2 layers are not calibrated" in note for note in config.notes)
    assert any("each tensor-parallel group holds all 128 experts" in note for note in config.notes)


@pytest.mark.parametrize("words", [WORDS, NEWER])
def test_a_list_of_words_says_the_same(tmp_path: Path, words: dict[str, str]) -> None:
    listed = [words[letter] for letter in NANO_PATTERN]
    made = read(tmp_path, NANO, layers_block_type=listed, hybrid_override_pattern=..., num_hidden_layers=...)
    assert made.options == read(tmp_path, NANO).options


def test_dense_layers_beside_experts_have_a_width_of_their_own(tmp_path: Path) -> None:
    config = read(tmp_path, NANO, hybrid_override_pattern="M-E*", num_hidden_layers=4, intermediate_size=5000)
    assert [op.dims.get("ffn") for op in graph(config).operators[1:5]] == [None, 5000, 1856, None]


def test_codestral_mamba(tmp_path: Path) -> None:
    made = graph(read(tmp_path, CODESTRAL_MAMBA))
    assert parameters(made) == 7_285_403_648
    assert {op.dims["chunk"] for op in made.operators if op.kind == "mamba_layer"} == {256}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hybrid_override_pattern": ...}, "nothing says which part each layer has"),
        ({"hybrid_override_pattern": "MX" * 26}, "hybrid_override_pattern has 'X', only M, *, -, E can be priced"),
        ({"hybrid_override_pattern": "M" * 3000}, "has 3000 layers, at most"),
        ({"layers_block_type": ["mamba", "gdn"]}, "layers_block_type has 'gdn', only mamba"),
        ({"num_hidden_layers": 50}, "num_hidden_layers is 50, hybrid_override_pattern has 52"),
        ({"moe_latent_size": 1024}, "moe_latent_size is 1024"),
        ({"mamba_proj_bias": True}, "mamba_proj_bias is True"),
        ({"mamba_num_heads": 0}, "mamba_num_heads is 0"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PipebenchError) as refused:
        read(tmp_path, NANO, **changes)
    assert reason in refused.value.message
