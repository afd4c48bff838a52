"""Costs of language models: what tensor parallelism shares out, what recomputation trades."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.kept import saved_bytes
from pipebench.costs.shapes.transformer import LayerShape, layer_shape
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.formats.devices import load_device
from pipebench.formats.frameworks.facts import load_framework
from pipebench_analytic.elementwise import ELEMENTWISE
from pipebench_analytic.speeds import Speeds
from pipebench_analytic.training import TrainingCosts
from tests.analytic.profiling import COMPUTE_BOUND, NEARLY, V100, costs_of, run
from tests.models.zoo import model

NO_OVERHEAD = {"launch_s": 0.0, "r_half": 0.0, "efficiency": 1.0}
SHAPE = {"layers": 2, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 1000, "sequence": 64}
GRAPH = model("llm", **SHAPE)


def named(costs: OperatorCosts, identifier: str) -> Alternative:
    return costs.alternative(identifier)


def test_degrees_divide_heads_key_heads_and_sequence() -> None:
    offered = [a.id for a in costs_of(run(GRAPH), "layers.0").alternatives]
    assert offered == ["recompute", "tp2-sp", "tp2-sp-recompute", "tp4-sp", "tp4-sp-recompute"]
    assert [a.id for a in costs_of(run(GRAPH), "head").alternatives] == offered
    no_links = replace(V100, peer_bandwidth_bytes_s=0.0)
    assert [a.id for a in costs_of(run(GRAPH, device=no_links), "layers.0").alternatives] == ["recompute"]


@pytest.mark.parametrize("operator", ["layers.0", "head"])
def test_with_endless_links_work_is_divided(operator: str) -> None:
    costs = costs_of(run(GRAPH, device=COMPUTE_BOUND, **NO_OVERHEAD), operator)
    split = named(costs, "tp4-sp")
    assert split.forward_s[0] == pytest.approx(costs.forward_s[0] / 4, rel=NEARLY)
    assert split.backward_s[0] == pytest.approx(costs.backward_s[0] / 4, rel=NEARLY)
    assert split.saved_bytes_per_sample == pytest.approx(costs.saved_bytes_per_sample / 4)


def test_weights_are_divided_but_for_norms() -> None:
    shape = layer_shape(GRAPH.operators[1])
    split = named(costs_of(run(GRAPH), "layers.0"), "tp4-sp")
    assert split.parameter_bytes == 4 * ((shape.weights() - 2 * 512) // 4 + 2 * 512)


def test_collectives_are_two_all_reduces_each_way() -> None:
    """Shoeybi et al. 2019, section 3: s h elements twice forward and twice backward."""
    made = run(GRAPH, device=replace(COMPUTE_BOUND, peer_bandwidth_bytes_s=1e9), **NO_OVERHEAD)
    costs = costs_of(made, "layers.0")
    split = named(costs, "tp2-sp")
    stream = 4 * 64 * 512
    assert split.collective_bytes == 2 * stream
    sent = 2 * stream * 2 * (2 - 1) / 2 / 1e9
    assert split.forward_s[0] - costs.forward_s[0] / 2 == pytest.approx(sent, rel=1e-3)


def test_recomputing_keeps_the_input_and_runs_the_forward_again() -> None:
    costs = costs_of(run(GRAPH), "layers.0")
    again, plain = named(costs, "tp2-sp-recompute"), named(costs, "tp2-sp")
    assert again.saved_bytes_per_sample == 4 * 64 * 512 / 2
    assert again.backward_s[0] == pytest.approx(plain.backward_s[0] + plain.forward_s[0])
    assert again.transient_bytes_per_sample == plain.saved_bytes_per_sample - again.saved_bytes_per_sample
    assert named(costs_of(run(GRAPH), "head"), "tp2-sp-recompute").transient_bytes_per_sample == 0


def test_saved_bytes_are_34_s_h_with_gpts_shape() -> None:
    """Korthikanti et al. 2022, table 2: 34 s b h in 16 bits; the row sums of flash attention come on top."""
    graph = model(
        "llm", architecture="gpt2", dropout=True, layers=1, hidden=1024, heads=8, ffn=4096, vocab=64, sequence=128
    )
    device = replace(V100, peak_flops={"fp16": 1e14})
    saved = costs_of(run(graph, device=device, precision="fp16"), "layers.0").saved_bytes_per_sample
    assert saved == 34 * 128 * 1024 + 4 * 8 * 128


def test_a_gated_part_saves_three_widths_and_experts_those_that_run() -> None:
    dense = layer_shape(GRAPH.operators[1])
    routed = layer_shape(model("llm", **SHAPE, architecture="mixtral", experts=4, active=2).operators[1])
    inner = 3 * 1024
    assert saved_bytes(routed, 2) - saved_bytes(dense, 2) == 64 * 2 * (inner + 512)


QWEN: dict[str, Any] = {
    "hidden": 512,
    "heads": 8,
    "kv_heads": 4,
    "head": 96,
    "ffn": 1024,
    "sequence": 64,
    "branches": 2,
}
QUERIES, KEYS = 8 * 96, 4 * 96


def test_what_a_llama_may_have_besides_is_weighed_and_kept() -> None:
    """Biases go with the heads to which they belong; a norm of heads is whole on each device, its input kept."""
    plain, biased, normed = (LayerShape(**QWEN, **more) for more in ({}, {"qkv_bias": True}, {"head_norm": True}))
    for ways in (1, 4):
        assert biased.weights(ways) - plain.weights(ways) == (QUERIES + 2 * KEYS) // ways
        assert normed.weights(ways) - plain.weights(ways) == 2 * 96
        assert saved_bytes(biased, 2, ways) == saved_bytes(plain, 2, ways)
        kept = 64 * (QUERIES + KEYS) / ways
        assert saved_bytes(normed, 2, ways) - saved_bytes(plain, 2, ways) == 2 * kept
        eager = [saved_bytes(shape, 2, ways, elementwise="eager") for shape in (normed, plain)]
        assert eager[0] - eager[1] == (2 + 4) * kept


def test_norms_of_all_heads_are_shared_out() -> None:
    plain, normed = (LayerShape(**QWEN, **more) for more in ({}, {"head_norm": True, "wide_head_norm": True}))
    for ways in (1, 4):
        assert normed.weights(ways) - plain.weights(ways) == (QUERIES + KEYS) // ways


def test_biases_of_single_products() -> None:
    """Those behind products that are split by input are whole on each device."""
    plain = LayerShape(**QWEN)
    behind, inside = (LayerShape(**QWEN, **{name: True}) for name in ("out_bias", "ffn_bias"))
    everywhere = LayerShape(**QWEN, qkv_bias=True, out_bias=True, ffn_bias=True)
    for ways in (1, 4):
        assert behind.weights(ways) - plain.weights(ways) == 512
        assert inside.weights(ways) - plain.weights(ways) == 2 * 1024 // ways + 512
        assert everywhere.weights(ways) == LayerShape(**QWEN, bias=True).weights(ways)


@pytest.mark.parametrize(
    ("norms", "parallel", "streams", "reads"),
    [(2, False, 4, 2), (4, False, 6, 2), (2, True, 3, 2), (1, True, 2, 1)],
)
def test_what_norms_and_first_products_read_is_kept(norms: int, parallel: bool, streams: int, reads: int) -> None:
    """A part behind the other has an input of its own; parts side by side share the layer's."""
    usual, other = LayerShape(**QWEN), LayerShape(**QWEN, norms=norms, parallel=parallel)
    stream = 64 * 512
    assert other.weights() - usual.weights() == (norms - 2) * 512
    assert saved_bytes(other, 2) - saved_bytes(usual, 2) == 2 * stream * (streams - 4)
    narrow = [saved_bytes(each, 2) - saved_bytes(each, 2, narrow_bytes=1) for each in (other, usual)]
    assert narrow[0] - narrow[1] == stream * (reads - 2)
    split = [saved_bytes(each, 2, 4, keeps_gathered=True) - saved_bytes(each, 2, 4) for each in (other, usual)]
    assert split[0] * 2 == split[1] * reads
    eager = [saved_bytes(each, 2, elementwise="eager") - saved_bytes(each, 2) for each in (other, usual)]
    assert eager[0] - eager[1] == 4 * stream * (norms - 2)


def test_norms_that_subtract_the_mean_keep_nothing_in_fp32() -> None:
    for vectors in (0, 1, 2):
        shape = LayerShape(**QWEN, vectors=vectors, centred=vectors < 2, head_norm=vectors > 0)
        gated = 64 * 2 * 1024
        assert saved_bytes(shape, 2, elementwise="eager") - saved_bytes(shape, 2) == gated


def test_a_bias_of_the_head_is_held_and_shared_out() -> None:
    plain, biased = (run(model("llm", **SHAPE, head_bias=bias)) for bias in (False, True))
    for way in ("tp2-sp", "tp4-sp"):
        held = [named(costs_of(each, "head"), way).parameter_bytes for each in (plain, biased)]
        assert held[1] - held[0] == 4 * 1000 // int(way[2])


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "torchtitan-eager"])
def test_other_norms_and_biases_take_time(name: str) -> None:
    framework = replace(load_framework(name), launch_s=0.0)
    speeds = Speeds(load_device("A100-SXM4-80GB"), "bf16", framework)
    made = TrainingCosts(speeds, framework, "flash", 2, (1,))
    sizes = SHAPE | {"hidden": 4096, "heads": 32, "kv_heads": 8, "sequence": 4096, "ffn": 8192}
    kernels = ELEMENTWISE[framework.elementwise](2, speeds.stream_s)
    elements = 4096.0 * 4096

    def seconds(architecture: str = "llama", **more: Any) -> tuple[float, float]:
        costs = made.costs(model("llm", **sizes, architecture=architecture, **more).operators[1], 0, (), 0)
        return costs.forward_s[0], costs.backward_s[0]

    plain = seconds()
    for norms, parallel in ((4, False), (1, True)):
        other = seconds(norms=norms, parallel=parallel)
        passes = zip(other, plain, (kernels.norm, kernels.norm_backward), strict=True)
        for took, usual, norm in passes:
            assert took - usual == pytest.approx((norms - 2) * sum(norm(elements, True)))
    biased = seconds(out_bias=True, ffn_bias=True)
    streams = 2 * speeds.stream_s(2 * elements) + speeds.stream_s(2 * 2 * 4096 * 8192)
    assert biased[0] == plain[0]
    assert biased[1] - plain[1] == pytest.approx(streams)
    centred = seconds("cohere")
    for took, usual, norm in zip(centred, plain, (kernels.norm, kernels.norm_backward), strict=True):
        assert took - usual == pytest.approx(2 * (sum(norm(elements, False)) - sum(norm(elements, True))))


@pytest.mark.parametrize("architecture", ["llama", "cohere", "olmo", "stablelm"])
def test_the_last_norm_is_as_those_of_the_layers(architecture: str) -> None:
    framework = replace(load_framework("torchtitan-eager"), launch_s=0.0)
    speeds = Speeds(load_device("A100-SXM4-80GB"), "bf16", framework)
    graph = model("llm", **SHAPE, architecture=architecture)
    (norm,) = (operator for operator in graph.operators if operator.name == "norm")
    weight_bytes = sum(each.bytes for each in graph.parameters if each.name in norm.parameters) // 2
    costs = TrainingCosts(speeds, framework, "flash", 2, (1,)).costs(norm, weight_bytes, (), 0)
    stream = 64 * 512
    assert costs.saved_bytes_per_sample == (2 + 4 * (architecture == "llama")) * stream


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "torchtitan-eager"])
def test_what_a_llama_may_have_besides_takes_time(name: str) -> None:
    """The gradient of a bias is a sum over the tokens; heads are normed forward and backward."""
    framework = replace(load_framework(name), launch_s=0.0)
    speeds = Speeds(load_device("A100-SXM4-80GB"), "bf16", framework)
    made = TrainingCosts(speeds, framework, "flash", 2, (1,))
    sizes = SHAPE | {"hidden": 4096, "heads": 32, "kv_heads": 8, "sequence": 4096}

    def seconds(**more: bool) -> tuple[float, float]:
        costs = made.costs(model("llm", **sizes, **more).operators[1], 0, (), 0)
        return costs.forward_s[0], costs.backward_s[0]

    plain, biased, normed = seconds(), seconds(qkv_bias=True), seconds(head_norm=True)
    queries, keys = 4096 * 4096, 4096 * 1024
    assert biased[0] == plain[0]
    assert biased[1] - plain[1] == pytest.approx(speeds.stream_s(2 * (queries + 2 * keys)))
    kernels = ELEMENTWISE[framework.elementwise](2, speeds.stream_s)
    forward, backward = (
        sum(sum(norm(elements, True)) for elements in (queries, keys))
        for norm in (kernels.norm, kernels.norm_backward)
    )
    assert normed[0] - plain[0] == pytest.approx(forward)
    assert normed[1] - plain[1] == pytest.approx(backward)
