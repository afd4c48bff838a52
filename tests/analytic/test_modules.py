"""Modules of a layer that run again by themselves, by hand: their kernels, and what is not kept."""

from dataclasses import replace
from typing import Any

import pytest

from pipebench.costs.shapes.kept import saved_bytes
from pipebench.costs.shapes.modules import modules_of
from pipebench.costs.shapes.transformer import LayerShape, layer_shape
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.profile import Alternative, OperatorCosts, Profile
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.layer_kernels import LayerKernels
from pipebench_analytic.passes import Pass
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from tests.analytic.test_unlike_layers import DEEPSEEK, NODES, speeds
from tests.analytic.test_unlike_layers import made as profile_of
from tests.models.zoo import model

DENSE, ROUTED = 1, 2
"""Layers of DEEPSEEK: 16 heads with keys of 192 and values of 128, ranks 512 and 256, a feed-forward part of
3,072, or 16 experts of 384, four active, and one of 512 for all tokens."""
H, S, ROWS = 1024, 1024, 2048
LLAMA: dict[str, Any] = {"layers": 2, "hidden": 1024, "heads": 16, "ffn": 3072, "vocab": 1000, "sequence": 1024}


def shape_of(layer: int) -> LayerShape:
    return layer_shape(model("llm", **DEEPSEEK).operators[layer])


def other(layer: int = ROUTED, **changes: Any) -> LayerShape:
    """DEEPSEEK's with other options."""
    return layer_shape(model("llm", **DEEPSEEK | changes).operators[layer])


FULL_RANK: dict[str, Any] = {"query_rank": 0, "key_rank": 0, "rotated": 0, "value_head": 0, "head": 64}


def again(*modules: RecomputeModule, layer: int = ROUTED, ways: int = 1, ranks: int = 1) -> Pass:
    """At two samples."""
    facts = load_framework("megatron")
    made = LayerKernels(shape_of(layer), 2, ways, speeds(), facts, "flash", 2, ranks, modules)
    return made.passes().selective


def dropped(*modules: RecomputeModule, layer: int = ROUTED, **said: Any) -> float:
    """Bytes of a token that are not kept."""
    shape = shape_of(layer)
    return (saved_bytes(shape, 2, **said) - saved_bytes(shape, 2, again=modules, **said)) / S


def test_a_layer_has_the_modules_of_its_parts() -> None:
    assert modules_of(shape_of(DENSE)) == ("core_attn", "layernorm", "mla_up_proj", "mlp")
    routed = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "moe", "shared_experts")
    assert modules_of(shape_of(ROUTED)) == routed
    assert modules_of(layer_shape(model("llm", **LLAMA).operators[1])) == ("core_attn", "mlp")


def test_products_up_of_latent_attention() -> None:
    """The norms of both ranks, both products, the rotation and the heads' keys that are joined."""
    run, product, moved = again("mla_up_proj").kernels, speeds().product_s, speeds().stream_s
    assert product(ROWS, 16 * 192, 512) in run
    assert product(ROWS, 16 * (192 - 64 + 128), 256) in run
    assert product(ROWS, 512, 1024) not in run
    assert moved(2 * 2 * ROWS * 16 * 192) in run
    rotated = again("mla_up_proj", "core_attn")
    assert sum(rotated.kernels) < sum(run) + sum(again("core_attn").kernels)
    assert again("mla_up_proj", layer=DENSE).kernels == run
    # Queries and keys of 192, values of 128, the normed ranks; 64 features of all keys are kept in their place.
    assert dropped("mla_up_proj") == 2 * (16 * (192 + 192 + 128) + 512 + 256 - 64)
    assert dropped("mla_up_proj", narrow_bytes=1) == 2 * (16 * (192 + 192 + 128) - 64) + 512 + 256


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_activation_of_experts(ranks: int) -> None:
    """It reads both branches and writes one."""
    assert again("moe_act", ranks=ranks).kernels == [speeds().stream_s(2 * ROWS * 4 * 384 * 3)]
    assert again("moe_act", layer=DENSE).kernels == []
    assert dropped("moe_act") == 2 * 4 * 384
    assert dropped("moe_act", narrow_bytes=1) == 4 * 384
    assert dropped("moe_act", layer=DENSE) == 0


def test_norms_that_are_no_part_of_a_product() -> None:
    """Before latent attention, and before experts: what the first one made is not kept; of the second one what the
    router reads where tokens are copied to other ranks, and what the expert of all tokens reads.
    """
    norm = speeds().stream_s(2 * 2 * ROWS * H)
    assert again("layernorm").kernels == [norm, norm]
    assert again("layernorm", layer=DENSE).kernels == [norm]
    assert dropped("layernorm", layer=DENSE) == 2 * H
    assert dropped("layernorm") == 2 * H + 2 * H
    assert dropped("layernorm", dispatches=True) == 2 * H + 2 * H
    assert dropped("layernorm", dispatches=True, narrow_bytes=1) == H + 2 * H + H


def test_a_dense_part_keeps_what_its_norm_reads() -> None:
    run, product = again("mlp", layer=DENSE), speeds().product_s
    activation = speeds().stream_s(2 * ROWS * 3072 * 3)
    assert run.kernels == [product(ROWS, 2 * 3072, H), product(ROWS, H, 3072), activation]
    assert again("mlp").kernels == []
    assert again("mlp", layer=DENSE, ways=4).reduces == [2.0 * ROWS * H]
    assert dropped("mlp", layer=DENSE) == 2 * (H + 3 * 3072)
    assert dropped("mlp", layer=DENSE, narrow_bytes=1) == H + 2 * 2 * 3072 + 3072


def test_all_of_the_experts_keep_their_input() -> None:
    """Exchanges run again, too. Of the copies of a token, both sides of the activation and all that the expert of
    all tokens has, the input alone is left.
    """
    run, product = again("moe", ranks=4), speeds().product_s
    assert len(run.exchanges) == 2
    assert product(512, 16, H) not in run.kernels
    assert product(ROWS, 16, H) in run.kernels
    assert product(ROWS, 2 * 512, H) in run.kernels
    routed, shared = 4 * H + 3 * 4 * 384, H + 3 * 512
    assert dropped("moe") == 2 * (routed + shared) - 2 * H
    # The router's input is the checkpoint's: it is in both.
    assert dropped("moe", dispatches=True) == 2 * (routed + shared - H)
    assert dropped("moe", "layernorm", dispatches=True) == 2 * (routed + shared) + 2 * H
    narrow = 4 * H + 4 * 384 + H + 512
    assert dropped("moe", dispatches=True, narrow_bytes=1) == narrow + 2 * 2 * (4 * 384 + 512)


def test_the_expert_of_all_tokens() -> None:
    run, product = again("shared_experts").kernels, speeds().product_s
    assert product(ROWS, 2 * 512, H) in run
    assert product(ROWS, H, 512) in run
    assert not again("shared_experts", ranks=4).exchanges
    assert dropped("shared_experts") == 2 * 3 * 512
    # In 8 bits it kept its own copy of what the router reads.
    assert dropped("shared_experts", dispatches=True, narrow_bytes=1) == H + 2 * 2 * 512 + 512
    assert dropped("shared_experts", narrow_bytes=1) == H - 2 * H + 2 * 2 * 512 + 512


def test_a_norm_before_a_product_of_full_rank_is_a_part_of_it() -> None:
    shape = other(**FULL_RANK)
    assert modules_of(shape) == ("core_attn", "moe_act", "layernorm", "moe", "shared_experts")
    kept = saved_bytes(shape, 2, dispatches=True)
    assert (kept - saved_bytes(shape, 2, again=["layernorm"], dispatches=True)) / S == 2 * H


def test_an_expert_of_all_tokens_that_is_scaled_keeps_its_result_unless_it_runs_again() -> None:
    shape = other(shared_gate=True)
    kept = saved_bytes(shape, 2)
    assert (kept - saved_bytes(shape, 2, again=["shared_experts"])) / S == 2 * (3 * 512 + H)
    whole = 4 * H + 3 * 4 * 384 + 2 * H + 3 * 512
    assert (kept - saved_bytes(shape, 2, again=["moe"])) / S == 2 * (whole - H)


def test_parts_that_read_one_input_keep_it() -> None:
    """It is attention's as well: GPT-NeoX with one norm for both parts."""
    shape = layer_shape(model("llm", **LLAMA).operators[1])
    alone, joined = (
        (saved_bytes(each, 2) - saved_bytes(each, 2, again=["mlp"])) / S
        for each in (shape, replace(shape, parallel=True, norms=1))
    )
    assert alone - joined == 2 * H


@pytest.mark.parametrize("ways", [1, 4])
def test_what_runs_again_is_reduced_again(ways: int) -> None:
    """The expert of all tokens is split as a dense part; without one, experts that no ranks share out are."""
    crossing = [2.0 * ROWS * H] * (ways > 1)
    # Half an all-reduce of both ranks: a gather.
    assert again("mla_up_proj", ways=ways).reduces == [2.0 * ROWS * (512 + 256) / 2] * (ways > 1)
    assert again("shared_experts", ways=ways).reduces == crossing
    assert again("moe", ways=ways).reduces == crossing
    facts, alone = load_framework("megatron"), other(shared_ffn=0)
    for ranks, reduces in ((1, crossing), (4, [])):
        made = LayerKernels(alone, 2, ways, speeds(), facts, "flash", 2, ranks, ("moe",))
        assert made.passes().selective.reduces == reduces


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("layer", [DENSE, ROUTED])
def test_all_modules_are_less_than_the_layer(layer: int, ranks: int) -> None:
    """What is left of the forward: products down of latent attention, the one behind it, a norm, residuals."""
    kinds = [each for each in modules_of(shape_of(layer)) if each not in ("moe_act", "shared_experts")]
    facts, size = load_framework("megatron"), 2
    forward = LayerKernels(shape_of(layer), 2, 1, speeds(), facts, "flash", size, ranks).passes().forward
    part = again(*kinds, layer=layer, ranks=ranks)
    product = speeds().product_s
    rest = [product(ROWS, outer, inner) for outer, inner in ((512, H), (256 + 64, H), (H, 16 * 128))]
    residuals = [speeds().stream_s(2 * 3 * ROWS * H)] * 2
    norms = [speeds().stream_s(2 * 2 * ROWS * H)] * (layer == DENSE)
    assert sum(part.kernels) + sum([*rest, *residuals, *norms]) == pytest.approx(sum(forward.kernels))
    assert part.exchanges == forward.exchanges


def made(
    modules: str, framework: str | None = "megatron", options: dict[str, Any] = DEEPSEEK, **said: str
) -> Profile:
    settings = AnalyticOptions(recompute_modules=modules, **said)  # type: ignore[arg-type]
    return profile_of(framework, settings=settings, **options)


def ways(of: OperatorCosts) -> dict[str, Alternative]:
    return {each.id: each for each in of.alternatives}


def test_each_layer_is_offered_so() -> None:
    of = made("moe_act+mla_up_proj")
    assert of.provenance.modules == ("moe_act", "mla_up_proj")
    assert made("mla_up_proj+moe_act").costs == of.costs
    assert made("mla_up_proj+moe_act").provenance.modules == of.provenance.modules
    plain = made("")
    for at in (DENSE, ROUTED):
        layer, before = of.costs[0].operators[at], plain.costs[0].operators[at]
        offered, full = ways(layer)["selective"], ways(layer)["recompute"]
        assert (layer.forward_s, layer.backward_s) == (before.forward_s, before.backward_s)
        assert layer.backward_s[1] < offered.backward_s[1] < full.backward_s[1]
        assert layer.saved_bytes_per_sample > offered.saved_bytes_per_sample > full.saved_bytes_per_sample
        held = offered.saved_bytes_per_sample + offered.transient_bytes_per_sample
        assert held == pytest.approx(layer.saved_bytes_per_sample)
        assert "selective" not in ways(before)


def test_each_module_has_a_price_on_the_host() -> None:
    """Tiny kernels: launches decide. 300 us in the forward and as much in the backward, of each."""
    tiny = {**DEEPSEEK, "sequence": 128}
    one, two = (
        ways(made(each, options=tiny).costs[0].operators[ROUTED])["selective"]
        for each in ("moe_act", "moe_act+layernorm")
    )
    assert two.forward_s[0] - one.forward_s[0] == pytest.approx(300e-6, rel=1e-6)
    norms = 2 * load_framework("megatron").launch_s
    assert two.backward_s[0] - one.backward_s[0] == pytest.approx(300e-6 + norms, rel=1e-6)


def test_scores_are_kept_unless_the_core_runs_again() -> None:
    scores = 16 * S * 2 * S
    kept = {
        each: ways(made(each, attention="unfused").costs[0].operators[ROUTED])["selective"].saved_bytes_per_sample
        for each in ("moe_act", "moe_act+core_attn")
    }
    assert kept["moe_act"] - kept["moe_act+core_attn"] == pytest.approx(scores - 4 * 16 * S, rel=1e-6)


def test_modules_run_again_beside_a_core_that_always_does() -> None:
    """Unfused attention that runs its core again has that in the plain backward. The host decides here."""
    layer = made("moe_act", attention="selective").costs[0].operators[ROUTED]
    more = ways(layer)["selective"].backward_s[1] - layer.backward_s[1]
    facts = load_framework("megatron")
    assert more == pytest.approx(facts.rerun_s + facts.launch_s, rel=1e-6)


@pytest.mark.parametrize(
    ("modules", "said", "message"),
    [
        ("moe_acts", {}, "did you mean 'moe_act'"),
        ("moe_act+moe_act", {}, "named twice"),
        ("moe+moe_act", {}, "moe_act is a part of moe"),
        ("moe_act", {"framework": "torchtitan"}, "torchtitan runs no modules again by name"),
        ("moe_act", {"framework": None}, "counts with a framework"),
        ("moe_act", {"options": LLAMA}, "no layer of .* has moe_act"),
        ("core_attn", {"attention": "selective"}, "attention's core runs again already"),
        ("core_attn", {"options": None}, "no layer of"),
    ],
)
def test_what_cannot_be(modules: str, said: dict[str, Any], message: str) -> None:
    if said.get("options", DEEPSEEK) is None:
        request = ProfileRequest(devices=NODES.types, micro_batches=(1,), framework=load_framework("megatron"))
        with pytest.raises(PipebenchError, match=message):
            profile(model("bert"), Context(options=AnalyticOptions(recompute_modules=modules), request=request))
        return
    with pytest.raises((PipebenchError, ValueError), match=message):
        made(modules, **said)
