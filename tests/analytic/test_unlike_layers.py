"""Prices of windows, of latent attention and of experts that all tokens pass, by hand."""

from typing import Any

import numpy as np
import pytest

from pipebench.costs.shapes.transformer import layer_shape
from pipebench.domain.profile import OperatorCosts, Profile
from pipebench.formats.clusters import load_cluster
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.kernels.speeds import kernel_speeds
from pipebench_analytic.layer_kernels import LayerKernels
from pipebench_analytic.passes import OperatorPasses
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from pipebench_analytic.speeds import Speeds
from tests.models.zoo import model

NODES = load_cluster("dgx-h100", 16)
OSS: dict[str, Any] = {
    "architecture": "mixtral",
    "layers": 2,
    "hidden": 1440,
    "heads": 16,
    "kv_heads": 4,
    "head": 64,
    "ffn": 1440,
    "vocab": 1000,
    "sequence": 2048,
    "experts": 16,
    "active": 4,
    "qkv_bias": True,
    "out_bias": True,
    "ffn_bias": True,
    "sinks": True,
    "router_bias": True,
}
DEEPSEEK: dict[str, Any] = {
    "architecture": "mixtral",
    "layers": 2,
    "hidden": 1024,
    "heads": 16,
    "head": 192,
    "ffn": 384,
    "vocab": 1000,
    "sequence": 1024,
    "experts": 16,
    "active": 4,
    "routed": "de",
    "dense_ffn": 3072,
    "shared_ffn": 512,
    "query_rank": 512,
    "key_rank": 256,
    "rotated": 64,
    "value_head": 128,
}


def made(
    framework: str | None = "megatron", ranks: int = 1, settings: AnalyticOptions | None = None, **options: Any
) -> Profile:
    request = ProfileRequest(
        devices=NODES.types,
        micro_batches=(1, 2),
        precision="bf16",
        framework=None if framework is None else load_framework(framework),
        links=NODES.levels,
        expert_parallel=ranks,
    )
    return profile(model("llm", **options), Context(options=settings or AnalyticOptions(), request=request))


def layers(of: Profile) -> tuple[OperatorCosts, OperatorCosts]:
    return of.costs[0].operators[1], of.costs[0].operators[2]


def speeds(name: str = "megatron") -> Speeds:
    return Speeds(NODES.types[0], "bf16", load_framework(name), NODES.levels)


def passes(options: dict[str, Any], layer: int = 1, ways: int = 1, ranks: int = 1) -> OperatorPasses:
    shape = layer_shape(model("llm", **options).operators[layer])
    return LayerKernels(shape, 2, ways, speeds(), load_framework("megatron"), "flash", 2, ranks).passes()


@pytest.mark.parametrize("framework", ["megatron", "torchtitan-eager", "megatron-v2", None])
def test_a_window_as_long_as_a_sample_is_none(framework: str | None) -> None:
    assert made(framework, **OSS | {"window": 2048}).costs == made(framework, **OSS).costs


@pytest.mark.parametrize("framework", ["megatron", None])
def test_layers_that_take_turns_have_two_prices(framework: str | None) -> None:
    windowed, whole = layers(made(framework, **OSS | {"sequence": 8192, "window": 128, "windowed": "wf"}))
    assert windowed.forward_s[0] < whole.forward_s[0]
    assert windowed.backward_s[0] < whole.backward_s[0]
    assert windowed.saved_bytes_per_sample == whole.saved_bytes_per_sample


@pytest.mark.parametrize("window", [1, 128, 129, 500, 1000, 1919])
def test_a_block_of_queries_works_on_the_keys_that_any_of_them_sees(window: int) -> None:
    """The surface's mean of keys is that over 16 blocks, to a hundredth of what windows change."""
    surface = kernel_speeds("H100-SXM-80GB").fused_attention()  # type: ignore[union-attr]
    assert surface is not None
    seconds = [float(surface.seconds(64, 2048, 16, 16, 64, window=each)) for each in (window, 2048 - 128)]
    keys = [np.mean([min(128 * (block + 1), each + 128) for block in range(16)]) for each in (window, 2048 - 128)]
    fixed = float(surface.seconds(64, 2048, 16, 16, 64, window=1))
    assert seconds[1] == pytest.approx(float(surface.seconds(64, 2048, 16, 16, 64)), rel=1e-12)
    if window > 1:
        part = (seconds[0] - fixed) / (seconds[1] - fixed)
        lowest = np.mean([min(128 * (block + 1), 129) for block in range(16)])
        assert part == pytest.approx((keys[0] - lowest) / (keys[1] - lowest), abs=0.01)


def test_parts_of_a_sequence_that_do_not_see_each_other_are_samples() -> None:
    alone = speeds().attention_s(8, 512, 16, 4, 64, True)
    assert speeds().attention_s(2, 2048, 16, 4, 64, True, chunk=512) == alone
    rest = speeds().attention_s(2, 100, 16, 4, 64, True)
    assert speeds().attention_s(2, 2148, 16, 4, 64, True, chunk=512) == alone + rest


def test_the_core_of_latent_attention_has_the_mean_width_of_keys_and_values() -> None:
    assert speeds().attention_s(2, 1024, 16, 16, 160, True) in passes(DEEPSEEK).forward.kernels


def test_products_of_latent_attention_and_of_the_dense_layer() -> None:
    """The first layer is dense: 2 x 1024 tokens pass eight products, none of them a router's."""
    run, product = passes(DEEPSEEK).forward.kernels, speeds().product_s
    rows = 2048
    for outer, inner in ((512, 1024), (16 * 192, 512), (256 + 64, 1024), (16 * 256, 256), (1024, 16 * 128)):
        assert product(rows, outer, inner) in run
    assert product(rows, 2 * 3072, 1024) in run
    assert product(rows, 1024, 3072) in run
    assert product(rows, 16, 1024) not in run


def test_projections_down_work_on_a_part_of_the_sequence_with_whole_weights() -> None:
    run, product = passes(DEEPSEEK, ways=4).forward, speeds().product_s
    assert product(512, 512, 1024) in run.kernels
    assert product(2048, 16 * 192 // 4, 512) in run.kernels
    latent = 2 * 2048 * (1024 + 512 + 256 + 64) / 2
    assert run.reduces == [latent, 2.0 * 2048 * 1024]


@pytest.mark.parametrize("ranks", [1, 4])
def test_an_expert_that_all_tokens_pass_has_the_tokens_of_its_rank(ranks: int) -> None:
    run, product = passes(DEEPSEEK, layer=2, ranks=ranks).forward, speeds().product_s
    alone = passes(DEEPSEEK | {"shared_ffn": 0}, layer=2, ranks=ranks).forward
    up, down = product(2048, 2 * 512, 1024), product(2048, 1024, 512)
    streams = [speeds().stream_s(2 * 2048 * 3 * 512), speeds().stream_s(3 * 2 * 2048 * 1024)]
    more = sum(run.kernels) - sum(alone.kernels)
    assert more == pytest.approx(up + down + sum(streams))
    assert len(run.exchanges) == len(alone.exchanges) == (2 if ranks > 1 else 0)


@pytest.mark.parametrize("framework", ["megatron", None])
def test_ranks_share_out_the_experts_of_those_layers_that_have_some(framework: str | None) -> None:
    whole, shared = made(framework, **DEEPSEEK), made(framework, 4, **DEEPSEEK)
    assert layers(whole)[0] == layers(shared)[0]
    names = [operator.parameters[0] for operator in shared.graph.operators[1:3]]
    experts = 2 * 16 * 3 * 1024 * 384
    assert [shared.graph.expert_bytes[name] for name in names] == [0, experts // 4]
    held = [each.graph.parameter_bytes[names[1]] for each in (whole, shared)]
    assert held[0] - held[1] == experts * 3 // 4
    for way in layers(shared)[1].alternatives:
        assert way.expert_bytes == experts // 4
