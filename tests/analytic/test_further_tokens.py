"""Layers that predict further tokens (multi-token prediction): what they are, cost and keep, by hand."""

from typing import Any

import pytest

from pipebench.costs.shapes.flops import forward_flops
from pipebench.costs.shapes.transformer import FURTHER, layer_shape
from pipebench.domain.problem import Pins
from pipebench.domain.profile import Profile
from pipebench.formats.clusters import load_cluster
from pipebench.formats.frameworks.arrangement import arrange
from pipebench.formats.frameworks.facts import load_framework
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import TARGETS
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from tests.language_models import TINY, planned, problem
from tests.models.zoo import model

H, S, VOCAB, EXPERTS, FFN = 1024, 512, 20_000, 8, 384
ROUTED: dict[str, Any] = {
    "architecture": "mixtral",
    "layers": 2,
    "hidden": H,
    "heads": 8,
    "ffn": FFN,
    "vocab": VOCAB,
    "sequence": S,
    "experts": EXPERTS,
    "active": 2,
}
DEEPSEEK_V3: dict[str, Any] = {
    "architecture": "mixtral",
    "layers": 61,
    "hidden": 7168,
    "heads": 128,
    "head": 192,
    "ffn": 2048,
    "vocab": 129_280,
    "experts": 256,
    "active": 8,
    "routed": "d3e58",
    "dense_ffn": 18432,
    "shared_ffn": 2048,
    "query_rank": 1536,
    "key_rank": 512,
    "rotated": 64,
    "value_head": 128,
}
FRAMEWORKS = ["megatron", "torchtitan-eager", None]


def made(framework: str | None, ranks: int = 1, **options: Any) -> Profile:
    nodes = load_cluster("dgx-h100", 8)
    request = ProfileRequest(
        devices=nodes.types,
        micro_batches=(1, 4),
        precision="bf16",
        framework=None if framework is None else load_framework(framework),
        links=nodes.levels,
        expert_parallel=ranks,
    )
    return profile(model("llm", **ROUTED | options), Context(options=AnalyticOptions(), request=request))


def test_the_published_checkpoint_has_a_further_layer() -> None:
    """That of DeepSeek-V3 holds 684,489,845,504 elements: both tables twice, and 256 corrections of 59 routers."""
    graph = model("llm", **DEEPSEEK_V3, mtp=1)
    held = sum(parameter.bytes for parameter in graph.parameters) // 4
    assert held + 2 * 129_280 * 7168 + 59 * 256 == 684_489_845_504


def test_it_stands_before_the_norm_and_shares_the_table() -> None:
    graph = model("llm", **ROUTED, mtp=2)
    assert [op.name for op in graph.operators[2:]] == ["layers.1", "mtp.0", "mtp.1", "norm", "head"]
    assert [op.path for op in graph.operators[3:5]] == ["model.layers.2", "model.layers.3"]
    assert {op.kind for op in graph.operators[3:5]} == {FURTHER}
    assert all("embedding.table" in op.parameters for op in graph.operators[3:5])
    sizes = [tensor.forward_bytes_per_sample / (4 * S * H) for tensor in graph.tensors[1:]]
    assert sizes == [1, 1, 1, 2, 3, 1]


def test_work_is_that_of_a_layer_a_product_and_a_second_head() -> None:
    plain, further = model("llm", **ROUTED), model("llm", **ROUTED, mtp=1)
    layer, ahead = further.operators[2], further.operators[3]
    assert forward_flops(ahead) == forward_flops(layer) + 2 * S * 2 * H * H
    assert layer_shape(ahead).weights() == layer_shape(layer).weights() + 2 * H * H + 3 * H
    assert forward_flops(further.operators[-1]) == 2 * forward_flops(plain.operators[-1])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_it_takes_and_keeps(framework: str | None) -> None:
    plain, further = made(framework), made(framework, mtp=1)
    layer, ahead = further.costs[0].operators[2:4]
    wide = 3 * 4 * H if framework == "torchtitan-eager" else 0  # inputs of three norms in fp32
    assert ahead.saved_bytes_per_sample - layer.saved_bytes_per_sample == pytest.approx(S * (5 * 2 * H + wide))
    assert ahead.forward_s[1] > layer.forward_s[1]
    assert ahead.weight_gradient_s[1] > layer.weight_gradient_s[1]
    heads = [each.costs[0].operators[-1] for each in (plain, further)]
    assert heads[1].forward_s[1] == pytest.approx(2 * heads[0].forward_s[1], rel=0.02)
    assert heads[1].saved_bytes_per_sample == 2 * heads[0].saved_bytes_per_sample
    assert plain.costs[0].operators[:3] == further.costs[0].operators[:3]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_one_of_several_devices_holds(framework: str | None) -> None:
    """Its part of the layer, and of the table."""
    ahead = made(framework, mtp=1).costs[0].operators[3]
    shape = layer_shape(model("llm", **ROUTED, mtp=1).operators[3])
    for way in ahead.alternatives:
        ways = way.tensor_parallel
        assert way.parameter_bytes == 2 * shape.weights(ways) + 2 * VOCAB * H // ways


@pytest.mark.parametrize("framework", ["megatron", None])
def test_ranks_share_out_its_experts(framework: str | None) -> None:
    shared = made(framework, 4, mtp=1)
    own, table = shared.graph.operators[3].parameters
    assert shared.graph.expert_bytes[own] == 2 * EXPERTS * 3 * H * FFN // 4
    assert shared.graph.expert_bytes[table] == 0
    held = shared.graph.parameter_bytes
    assert all(
        way.parameter_bytes == held[own] + held[table]
        for way in shared.costs[0].operators[3].alternatives
        if way.tensor_parallel == 1
    )


def test_megatron_has_it_beside_the_loss() -> None:
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    given = problem(devices=2, mini_batch=8, pins=pins, **TINY, mtp=1)
    arranged = arrange(given, planned(given))
    lines = TARGETS["megatron"].write(arranged, "").splitlines()
    assert "--mtp-num-layers 1" in lines
    assert f"--num-layers {TINY['layers']}" in lines
    (layout,) = (line for line in lines if line.startswith("--pipeline-model-parallel-layout"))
    assert layout.endswith("m,L'")
    with pytest.raises(CannotExpress, match="torchtitan knows tok_embeddings, layers, norm, lm_head"):
        TARGETS["torchtitan"].write(arranged, "order.csv")
