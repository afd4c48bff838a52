"""Layers of one part: published numbers of parameters, FLOP by hand, kinds in their order, what is refused."""

from typing import Any

import pytest

from pipebench.algorithms.chains.level_cuts import cut_items
from pipebench.costs.shapes.flops import forward_flops
from pipebench.costs.shapes.transformer import layer_shape
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import OperatorGraph
from tests.hybrid_models import NANO_PATTERN, TINY_HYBRID, nano_elements
from tests.models.zoo import model

FP32_BYTES = 4
NANO: dict[str, Any] = {
    "architecture": "nemotron_h",
    "layers": 52,
    "hybrid": NANO_PATTERN.lower().replace("*", "a"),
    "hidden": 2688,
    "heads": 32,
    "kv_heads": 2,
    "head": 128,
    "ffn": 1856,
    "experts": 128,
    "active": 6,
    "shared_ffn": 3712,
    "mamba_heads": 64,
    "vocab": 131072,
    "sequence": 8192,
}


def parameters(graph: OperatorGraph) -> int:
    return sum(parameter.bytes for parameter in graph.parameters) // FP32_BYTES


def flops(graph: OperatorGraph) -> int:
    """Of layers and head."""
    return sum(forward_flops(op) for op in graph.operators if op.kind != "token_norm")


def test_nemotron_3_nano_has_its_published_parameters() -> None:
    """31.6 billion, of which a token passes 3.2, or 3.6 with both tables (its technical report)."""
    counted = parameters(model("llm", **NANO))
    assert counted == sum(nano_elements(128)) == 31_577_937_344
    active = sum(nano_elements(6))
    assert round(active / 1e9, 1) == 3.6
    assert round((active - 131_072 * 2688) / 1e9, 1) == 3.2


def test_flops_are_two_a_weight_attention_and_the_scan() -> None:
    """The scan by hand: for each head a token and those before it in its chunk, itself by half."""
    tokens, graph = 8192, model("llm", **NANO)
    mamba, experts, attention, tables = nano_elements(6)
    vectors = 23 * (2688 + 6144 * 5 + 3 * 64 + 4096) + 23 * 2688 + 6 * 2688 + 2688 + 131_072 * 2688
    products = 2 * tokens * (mamba + experts + attention + tables - vectors)
    core = 6 * 4 * (tokens**2 / 2) * 32 * 128
    inside = 2 * 64 * 64 * (tokens / 128) * (128 * 128 / 2)  # scores times x, chunk by chunk
    across = 2 * 2 * tokens * 64 * 64 * 128  # states are made, and are read
    scores = 2 * 8 * (tokens / 128) * 128 * 128 * 128  # C times B of all pairs, for each group
    assert flops(graph) == products + core + 23 * (inside + across + scores)


def test_its_flops_a_token_are_those_that_its_published_runs_count() -> None:
    """TFLOP/s over tokens/s of the source: 22.28 billion. It takes the width of Mamba-2 as twice the model's, and
    seven FLOP for each state of it (Megatron-LM, num_floating_point_operations); the rest is the same.
    """
    tokens, graph = 8192, model("llm", **NANO)
    scan = sum(forward_flops(op) for op in graph.operators if op.kind == "mamba_layer")
    scan -= 23 * 2 * tokens * 2688 * (2 * 4096 + 2 * 1024 + 64 + 4096)
    wider = 23 * 2 * 2688 * 3 * (2 * 2688 - 4096) + 23 * 7 * 2 * 2688 * 128
    router = 23 * 2 * 2688 * 128
    counted = 3 * (flops(graph) / tokens - scan / tokens + wider - router)
    assert counted / 1e9 == pytest.approx(22.28, abs=0.01)


def test_a_pure_mamba_model_has_its_published_parameters() -> None:
    graph = model(
        "llm",
        architecture="nemotron_h",
        hybrid="m",
        layers=64,
        hidden=4096,
        heads=1,
        ffn=1,
        mamba_heads=128,
        mamba_chunk=256,
        vocab=32768,
    )
    assert parameters(graph) == 7_285_403_648


def test_each_layer_has_the_part_that_its_letter_names() -> None:
    graph = model("llm", **TINY_HYBRID | {"hybrid": "m2ade", "layers": 7})
    kinds = ["mamba", "mamba", "attention", "feed_forward", "feed_forward", "mamba", "mamba"]
    assert [op.kind for op in graph.operators[1:-2]] == [f"{kind}_layer" for kind in kinds]
    assert [layer_shape(op).experts for op in graph.operators[4:6]] == [1, 8]
    assert [layer_shape(op).ffn for op in graph.operators[4:6]] == [512, 192]
    assert graph.operators[1].path == "backbone.layers.0"


def test_a_stage_may_end_behind_any_layer() -> None:
    """Embedding, each layer, norm and head together, as of other language models."""
    graph = model("llm", **TINY_HYBRID)
    assert cut_items(graph) == ((0,), *((layer,) for layer in range(1, 9)), (9, 10))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hybrid": "mx"}, "hybrid=mx: it takes m"),
        ({"hybrid": ""}, "say the part of each layer with hybrid"),
        ({"architecture": "mixtral", "dense_ffn": 0}, "only architecture=nemotron_h has layers of one part"),
        ({"hybrid": "m"}, "experts=8: hybrid has e where there are some"),
        (
            {"experts": 1, "active": 1, "shared_ffn": 0, "dense_ffn": 0},
            "experts=1: hybrid has e where there are some",
        ),
        ({"mamba_heads": 0}, "mamba_heads is 0"),
        ({"mamba_groups": 3}, "mamba_groups=3 does not divide mamba_heads=8"),
        ({"window": 64}, "window=64: not with hybrid"),
        ({"mtp": 1}, "mtp=1: not with hybrid"),
        ({"norms": 4}, "norms=4: not with hybrid"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        model("llm", **TINY_HYBRID | options)
    assert reason in refused.value.message
