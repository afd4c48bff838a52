"""Layers of one part: what Mamba-2 takes by hand, and parts that together are a whole layer."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.mamba import Mamba
from pipebench.costs.shapes.transformer import LayerShape, layer_shape
from pipebench.domain.profile import OperatorCosts, Profile
from pipebench.formats.clusters import load_cluster
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.layer_kernels import LayerKernels
from pipebench_analytic.passes import OperatorPasses
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from pipebench_analytic.speeds import Speeds
from tests.hybrid_models import TINY_HYBRID
from tests.models.zoo import model

NODE = load_cluster("dgx-h100", 8)
H100 = NODE.types[0]
T, H, INNER, SHARED, HEADS, N, CHUNK = 4096, 2688, 4096, 1024, 64, 128, 128
MAMBA = Mamba(heads=HEADS, head=64, groups=8, state=N, kernel=4, chunk=CHUNK)
LAYER = LayerShape(sequence=T, hidden=H, norms=1, mamba=MAMBA)
MEGATRON = replace(load_framework("megatron"), launch_s=0.0, skew_s=0.0)
SPEEDS = Speeds(H100, "bf16", MEGATRON, NODE.levels)


def passes(shape: LayerShape, samples: int = 1, ways: int = 1, ranks: int = 1, name: str = "") -> OperatorPasses:
    framework = replace(load_framework(name), launch_s=0.0) if name else MEGATRON
    speeds = Speeds(H100, "bf16", framework, NODE.levels)
    return LayerKernels(shape, samples, ways, speeds, framework, framework.attention, 2, ranks).passes()


def test_a_forward_is_two_products_and_what_runs_between_them() -> None:
    """Bytes by tensors: bf16, and fp32 for states, scores, decays and steps."""
    x, small, wide, states, scores = 2 * INNER, 2 * SHARED, 8 * HEADS, INNER * N // CHUNK, 4 * 8 * CHUNK
    scan = [
        (0, 2 * (x + 2 * small)),
        (0, 2 * HEADS + wide),
        (2 * INNER * N, x + small + wide + 4 * states),
        (0, 6 * states),
        (2 * 8 * CHUNK * N, 2 * small + scores),
        (2 * INNER * N + INNER * CHUNK, 4 * x + small + wide + 2 * states + scores),
        (0, 2 * x),
    ]
    peak, moved = 0.30 * H100.peak_flops["bf16"], 0.82 * H100.memory_bandwidth_bytes_s
    between = sum(max(T * flops / peak, T * size / moved) for flops, size in scan)
    around = (2 + 3) * 2 * T * H / moved  # the norm, the residual
    products = SPEEDS.layer_product_s(T, 2 * INNER + 2 * SHARED + HEADS, H) + SPEEDS.layer_product_s(T, H, INNER)
    made = passes(LAYER)
    assert sum(made.forward.kernels) == pytest.approx(products + around + between)
    assert not made.forward.reduces
    assert sum(made.weights.kernels) == pytest.approx(
        SPEEDS.layer_product_s(H, 2 * INNER + 2 * SHARED + HEADS, T)
        + SPEEDS.layer_product_s(INNER, H, T)
        + MEGATRON.accumulate_bytes * (H * (2 * INNER + 2 * SHARED + HEADS) + INNER * H) / moved
    )


def test_several_samples_are_copied_to_sample_first_and_back() -> None:
    one, two = (passes(replace_sequence(T // samples), samples) for samples in (1, 2))
    copied = 2 * 2 * T * (2 * INNER + 2 * SHARED + HEADS + INNER) / (0.82 * H100.memory_bandwidth_bytes_s)
    for direction in ("forward", "inputs"):
        alone, together = (sum(getattr(made, direction).kernels) for made in (one, two))
        assert together - alone == pytest.approx(copied)


def replace_sequence(tokens: int) -> LayerShape:
    return LayerShape(sequence=tokens, hidden=H, norms=1, mamba=MAMBA)


def test_two_devices_share_heads_and_groups_and_reduce_once_each_way() -> None:
    whole, half = passes(LAYER), passes(LAYER, ways=2)
    assert half.forward.reduces == half.inputs.reduces == [2.0 * T * H]
    between, shared = (
        sum(made.forward.kernels)
        - SPEEDS.layer_product_s(T, (2 * INNER + 2 * SHARED + HEADS) // ways, H)
        - SPEEDS.layer_product_s(T, H, INNER // ways)
        for made, ways in ((whole, 1), (half, 2))
    )
    assert shared == pytest.approx(between / 2)


@pytest.mark.parametrize(
    ("name", "experts", "ranks", "context"),
    [
        ("megatron", 1, 1, 1),
        ("megatron", 8, 1, 1),
        ("megatron", 8, 4, 1),
        ("megatron", 1, 1, 2),
        ("torchtitan-eager", 1, 1, 1),
    ],
)
def test_attention_and_feed_forward_alone_take_what_a_whole_layer_takes(
    name: str, experts: int, ranks: int, context: int
) -> None:
    common: dict[str, Any] = {"sequence": 1024, "hidden": 1024, "context_ranks": context}
    attention: dict[str, Any] = {"heads": 8, "kv_heads": 2, "head": 128}
    fed: dict[str, Any] = {"ffn": 512, "branches": 2, "experts": experts, "active": min(2, experts)}
    whole = passes(LayerShape(**common, **attention, **fed), 2, 2, ranks, name)
    parts = [passes(LayerShape(**common, **each, norms=1), 2, 2, ranks, name) for each in (attention, fed)]
    for direction in ("forward", "inputs", "weights"):
        together, apart = getattr(whole, direction), [getattr(each, direction) for each in parts]
        assert sum(sum(each.kernels) for each in apart) == pytest.approx(sum(together.kernels))
        assert sum(sum(each.reduces) for each in apart) == sum(together.reduces)
        assert sum(sum(each.exchanges) for each in apart) == pytest.approx(sum(together.exchanges))
        for launched in ("kernels", "exchanges"):
            assert sum(len(getattr(each, launched)) for each in apart) == len(getattr(together, launched))


def made(framework: str | None = None, *, selective: bool = False, ranks: int = 1, **options: Any) -> Profile:
    request = ProfileRequest(
        devices=NODE.types,
        micro_batches=(1, 4),
        precision="bf16",
        framework=None if framework is None else load_framework(framework),
        links=NODE.levels,
        expert_parallel=ranks,
        selective=selective,
    )
    return profile(model("llm", **TINY_HYBRID | options), Context(options=AnalyticOptions(), request=request))


def costs(of: Profile) -> dict[str, OperatorCosts]:
    return {each.operator: each for each in of.costs[0].operators}


MAMBA_LAYER, EXPERTS_LAYER, ATTENTION_LAYER, DENSE_LAYER = (f"layers.{number}" for number in (0, 1, 3, 4))


@pytest.mark.parametrize("framework", [None, "megatron"])
def test_ways_to_run_a_hybrid_model(framework: str | None) -> None:
    """Groups and key heads, two each, limit tensor parallelism; a layer that runs again keeps its input alone."""
    found = costs(made(framework))
    for name in (MAMBA_LAYER, EXPERTS_LAYER, ATTENTION_LAYER, DENSE_LAYER):
        assert {way.tensor_parallel for way in found[name].alternatives} == {1, 2}
        plain, again = found[name], found[name].alternative("recompute")
        assert again.saved_bytes_per_sample == 2 * 256 * 256
        assert again.backward_s[0] > plain.backward_s[0]
        shape = layer_shape(next(op for op in made(framework).graph.operators if op.name == name))
        assert found[name].alternative("tp2-sp").parameter_bytes == 2 * shape.weights(2)


@pytest.mark.parametrize(("groups", "degrees"), [(2, {1, 2}), (4, {1, 2, 4}), (1, {1})])
def test_tensor_parallelism_divides_the_groups(groups: int, degrees: set[int]) -> None:
    found = costs(made("megatron", mamba_groups=groups, kv_heads=8))[DENSE_LAYER]
    assert {way.tensor_parallel for way in found.alternatives} == degrees


@pytest.mark.parametrize("framework", [None, "megatron"])
def test_selective_recomputation_repeats_attention_alone(framework: str | None) -> None:
    found = costs(made(framework, selective=True))
    for name in (MAMBA_LAYER, EXPERTS_LAYER, DENSE_LAYER):
        way = found[name].alternative("selective")
        assert way.backward_s == found[name].backward_s
        assert way.saved_bytes_per_sample == found[name].saved_bytes_per_sample
    attention = found[ATTENTION_LAYER]
    assert attention.alternative("selective").backward_s[1] > attention.backward_s[1]


def test_torchtitans_checkpoints_are_of_whole_layers() -> None:
    assert "selective" not in {
        way.id for way in costs(made("torchtitan", selective=True))[MAMBA_LAYER].alternatives
    }


def test_without_a_framework_each_kernel_has_a_roofline() -> None:
    """Compute and memory at the profiler's efficiency; contractions at a rate that grows with rows."""
    graph, options = made().graph, AnalyticOptions()
    shape = layer_shape(next(op for op in graph.operators if op.name == MAMBA_LAYER))
    assert shape.mamba is not None
    peak, rows = H100.peak_flops["bf16"] * options.efficiency, 256.0
    bandwidth = H100.memory_bandwidth_bytes_s

    def seconds(flops: float, size: float, contracts: bool) -> float:
        rate = peak * rows / (rows + options.r_half) if contracts else peak
        return max(flops / rate, size / bandwidth) + options.launch_s

    total = sum(seconds(256 * s.flops, 256 * s.bytes(2), s.flops > 0) for s in shape.mamba.forward(256))
    for product in shape.products:
        size = 2 * (256 * (product.inner + product.outer) + product.inner * product.outer)
        total += seconds(product.flops, size, contracts=True)
    total += seconds(0, 2 * 2 * 256 * 256, contracts=False) + seconds(0, 3 * 2 * 256 * 256, contracts=False)
    assert costs(made())[MAMBA_LAYER].forward_s[0] == pytest.approx(total)


def test_the_profile_says_what_is_not_calibrated() -> None:
    assert any("Mamba-2 layers are not calibrated" in note for note in made().provenance.notes)
    dense = {"hybrid": "ad", "experts": 1, "active": 1, "shared_ffn": 0, "mamba_heads": 0, "dense_ffn": 0}
    assert not any("Mamba-2" in note for note in made(**dense).provenance.notes)


def test_ranks_share_out_the_experts_of_layers_that_have_some() -> None:
    """A Mamba-2 layer is as it is without them."""
    alone, shared = costs(made("megatron")), costs(made("megatron", ranks=4))
    assert shared[MAMBA_LAYER].forward_s == alone[MAMBA_LAYER].forward_s
    graph = made("megatron", ranks=4).graph
    held = {each.name: each.expert_bytes for each in graph.parameters}
    assert held["layers.1.weights"] == 2 * (8 // 4) * 2 * 256 * 192
    assert not held["layers.0.weights"]
