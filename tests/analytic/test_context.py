"""Layers whose sequence ranks share out: what they run, send, wait for and keep, by hand."""

from dataclasses import replace as replaced
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.attention import Latent
from pipebench.costs.shapes.context import with_context_ranks
from pipebench.costs.shapes.transformer import layer_shape
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.profile import OperatorCosts, Profile
from pipebench.formats.clusters import load_cluster
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.context import backward_waits_s, forward_waits_s, hop_s
from pipebench_analytic.layer_kernels import FLASH_BACKWARD, LayerKernels
from pipebench_analytic.passes import OperatorPasses
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from pipebench_analytic.speeds import Speeds
from tests.models.zoo import model

SEQUENCE, HIDDEN, FFN = 8192, 1024, 2048
LONG: dict[str, Any] = {
    "architecture": "llama",
    "layers": 2,
    "hidden": HIDDEN,
    "heads": 8,
    "kv_heads": 2,
    "ffn": FFN,
    "vocab": 1000,
    "sequence": SEQUENCE,
}
NODES = load_cluster("dgx-h100", 32)


def made(ranks: int, framework: str | None = "megatron", options: Any = None, **changes: Any) -> Profile:
    request = ProfileRequest(
        devices=NODES.types,
        micro_batches=(1, 2),
        precision="bf16",
        framework=None if framework is None else load_framework(framework),
        links=NODES.levels,
        context_parallel=ranks,
        selective=True,
    )
    return profile(model("llm", **LONG | changes), Context(options=options or AnalyticOptions(), request=request))


def passes(ranks: int, ways: int = 1, name: str = "megatron") -> tuple[OperatorPasses, Speeds]:
    """Of two samples of one layer."""
    framework = load_framework(name)
    speeds = Speeds(NODES.types[0], "bf16", framework, NODES.levels)
    graph = with_context_ranks(model("llm", **LONG), ranks)
    shape = layer_shape(graph.operators[1], graph.context_ranks)
    return LayerKernels(shape, 2, ways, speeds, framework, "flash", 2).passes(), speeds


def test_a_rank_runs_half_of_the_rows_and_half_of_the_core() -> None:
    """Two ranks: products of 8192 rows in place of 16384; the core in two steps of a quarter of the whole each."""
    shared, speeds = passes(2)
    rows = 2 * SEQUENCE // 2
    products = [(HIDDEN + 2 * 256, HIDDEN), (HIDDEN, HIDDEN), (2 * FFN, HIDDEN), (HIDDEN, FFN)]
    for outer, inner in products:
        assert speeds.product_s(rows, outer, inner) in shared.forward.kernels
        assert speeds.product_s(rows, inner, outer) in shared.inputs.kernels
        assert speeds.product_s(inner, outer, rows) in shared.weights.kernels
    core = speeds.attention_s(2, SEQUENCE, 8, 2, 128, True)
    assert shared.forward.kernels.count(core / 4) == 2
    assert shared.inputs.kernels.count(FLASH_BACKWARD[3] * core / 4) == 2
    whole, _ = passes(1)
    assert whole.forward.kernels.count(core) == 1
    assert len(shared.forward.kernels) == len(whole.forward.kernels) + 1
    shape = layer_shape(with_context_ranks(model("llm", **LONG), 4).operators[1], 4)
    assert shape.core_flops == layer_shape(model("llm", **LONG).operators[1]).core_flops / 4
    assert shape.weights() == layer_shape(model("llm", **LONG).operators[1]).weights()


def test_keys_and_values_go_round_beside_the_core() -> None:
    """Two key heads of 128 features: 2 x 2 bytes x 256 of each of 2 x 2048 tokens of a rank, of four."""
    shared, speeds = passes(4)
    part = 2 * 2.0 * 256 * 2 * SEQUENCE / 4
    step = speeds.attention_s(2, SEQUENCE, 8, 2, 128, True) / 16
    hop = speeds.all_reduce_s(part, 2)
    assert shared.forward.exchanges == [max(0.0, hop - step)] * 3
    back = 2.5 * step
    twice = speeds.all_reduce_s(2 * part, 2)
    ends, between = max(0.0, hop - back), max(0.0, twice - back)
    assert shared.inputs.exchanges == [ends, between, between, ends]
    assert shared.selective.exchanges == shared.forward.exchanges  # run again, sent again
    assert passes(1)[0].forward.exchanges == []


def test_under_tensor_parallelism_each_rank_has_a_ring_of_its_heads() -> None:
    split, speeds = passes(8, ways=2)
    step = speeds.attention_s(2, SEQUENCE, 4, 1, 128, True) / 64
    part = 2 * 2.0 * 128 * 2 * SEQUENCE / 8
    hop = part / (0.95 * 50e9) + NODES.levels[1].latency_s  # 16 devices: two nodes, one card a ring
    assert split.forward.exchanges == [pytest.approx(hop - step)] * 7
    assert hop > step


def test_a_hop_takes_the_slowest_link_of_the_ring() -> None:
    """Nodes of 4 whose cards carry 2 GB/s together, 1 GB/s a device; all-reduces of two at 10 GB/s."""
    links = (
        LinkLevel(name="node", group=4, bandwidth_bytes_s=10e9),
        LinkLevel(name="network", group=64, bandwidth_bytes_s=1e9, latency_s=1e-3, shared_bandwidth_bytes_s=2e9),
    )

    def inside(size: float, devices: int) -> float:
        assert devices == 2
        return size / 10e9

    assert hop_s(8e6, 4, 1, links, inside) == 8e-4
    assert hop_s(8e6, 8, 1, links, inside) == pytest.approx(8e-3 + 1e-3)
    assert hop_s(8e6, 4, 4, links, inside) == pytest.approx(8e6 / 0.5e9 + 1e-3)  # four rings share the cards
    assert hop_s(8e6, 4, 4, links, inside, 0.5) == pytest.approx(8e6 / 0.25e9 + 1e-3)
    assert hop_s(8e6, 1, 4, links, inside) == hop_s(0.0, 8, 1, links, inside) == 0.0


def test_what_is_waited_for_by_hand() -> None:
    """A hop of one part takes 3 s, of two 6 s; a step 2 s forward, 5 s backward."""

    def hop(parts: float) -> float:
        return 3.0 * parts

    assert forward_waits_s("ring", 4, 2.0, hop) == [1.0] * 3
    assert backward_waits_s("ring", 4, 5.0, hop) == [0.0, 1.0, 1.0, 0.0]
    assert backward_waits_s("ring", 2, 1.0, hop) == [2.0, 2.0]
    assert forward_waits_s("gather", 4, 2.0, hop) == [7.0]
    assert backward_waits_s("gather", 4, 1.0, hop) == [8.0, 2.0, 2.0, 2.0, 3.0]
    assert forward_waits_s("ring", 1, 2.0, hop) == backward_waits_s("gather", 1, 2.0, hop) == []


def test_torchtitan_gathers_keys_of_all_heads() -> None:
    """It writes keys once for each of the eight heads of queries, and sends them so."""
    shared, speeds = passes(16, name="torchtitan")
    part = 2 * 2.0 * 1024 * 2 * SEQUENCE / 16
    step = speeds.attention_s(2, SEQUENCE, 8, 2, 128, True) / 16**2
    hop = part / (0.95 * 50e9) + NODES.levels[1].latency_s
    assert shared.forward.exchanges == [pytest.approx(15 * hop - step)]
    assert shared.inputs.exchanges[-1] == pytest.approx(hop)


def test_keys_and_values_of_low_rank_are_sent_as_heads_read_them() -> None:
    """Eight heads with keys of 128 + 64 features and values of 128, as DeepSeek-V3 has them."""
    framework = load_framework("megatron")
    speeds = Speeds(NODES.types[0], "bf16", framework, NODES.levels)
    graph = with_context_ranks(model("llm", **LONG), 16)
    latent = Latent(query_rank=256, key_rank=128, rotated=64, value=128)
    shape = replaced(layer_shape(graph.operators[1], 16), latent=latent, kv_heads=8, head=192)
    kernels = LayerKernels(shape, 2, 1, speeds, framework, "flash", 2)
    step, hop = kernels._fused()[0], 2 * SEQUENCE / 16 * 2 * 8 * (192 + 128) / (0.95 * 50e9)
    hop += NODES.levels[1].latency_s
    assert kernels.passes().forward.exchanges == [pytest.approx(hop - step)] * 15


def test_experts_have_the_tokens_of_a_part() -> None:
    """Two ranks share out a sequence and four the experts: half of the copies go to other ranks."""
    framework = load_framework("megatron")
    speeds = Speeds(NODES.types[0], "bf16", framework, NODES.levels)
    options = LONG | {"architecture": "mixtral", "experts": 16, "active": 4}
    graph = with_context_ranks(model("llm", **options), 2)
    shape = layer_shape(graph.operators[1], 2)
    made = LayerKernels(shape, 2, 1, speeds, framework, "flash", 2, 4).passes()
    copies = 2.0 * 2 * SEQUENCE / 2 * 4 * HIDDEN
    assert made.forward.exchanges[:2] == [speeds.all_to_all_s(copies, 4)] * 2
    assert made.forward.exchanges[2:] == passes(2)[0].forward.exchanges
    rows = 2 * SEQUENCE // 2 * 4 * 4 // 16
    assert 4 * speeds.product_s(rows, HIDDEN, FFN) in made.forward.kernels


def operators(of: Profile) -> tuple[OperatorCosts, ...]:
    return of.costs[0].operators


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", None])
def test_activations_are_shared_and_weights_are_not(framework: str | None) -> None:
    whole, shared = made(1, framework), made(4, framework)
    assert shared.graph.context_ranks == 4
    assert shared.graph.parameters == whole.graph.parameters
    for one, all_of_it in zip(operators(shared), operators(whole), strict=True):
        assert 4 * one.saved_bytes_per_sample == pytest.approx(all_of_it.saved_bytes_per_sample, rel=1e-5)
        assert [way.id for way in one.alternatives] == [way.id for way in all_of_it.alternatives]
        for way, other in zip(one.alternatives, all_of_it.alternatives, strict=True):
            assert way.parameter_bytes == other.parameter_bytes
            assert 4 * way.saved_bytes_per_sample == pytest.approx(other.saved_bytes_per_sample, rel=1e-5)
            assert 4 * way.transient_bytes_per_sample == pytest.approx(
                other.transient_bytes_per_sample, rel=1e-5, abs=1
            )
    assert [note for note in shared.provenance.notes if "is modelled, not measured" in note]
    assert not [note for note in whole.provenance.notes if "is modelled, not measured" in note]


def test_without_a_framework_the_roofline_does_the_same() -> None:
    """A quarter of the time of a layer, launches and waits apart: products and core have a quarter of the work."""
    options = AnalyticOptions(launch_s=0.0, r_half=0.0)
    whole, shared = (operators(made(ranks, None, options))[1] for ranks in (1, 4))
    assert shared.forward_s[1] == pytest.approx(whole.forward_s[1] / 4, rel=0.02)
    assert shared.forward_s[1] >= whole.forward_s[1] / 4
    slow = replace(NODES.types[0], peer_bandwidth_bytes_s=1e8)
    request = ProfileRequest(devices=(slow,), micro_batches=(1,), precision="bf16", context_parallel=4)
    waiting = profile(model("llm", **LONG), Context(options=options, request=request)).costs[0].operators[1]
    hop = 2 * 2.0 * 256 * SEQUENCE / 4 / 1e8
    core = 2.0 * SEQUENCE**2 * HIDDEN / 16 / (NODES.types[0].peak_flops["bf16"] * options.efficiency)
    quiet = operators(made(4, None, options))[1].forward_s[0]
    fast = 2 * 2.0 * 256 * SEQUENCE / 4 / NODES.types[0].peer_bandwidth_bytes_s
    assert waiting.forward_s[0] - quiet == pytest.approx(3 * (hop - core) - 3 * max(0.0, fast - core), rel=1e-3)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(PipebenchError, match="context parallelism under megatron-v2 is not priced"):
        made(4, "megatron-v2")
    with pytest.raises(PipebenchError, match="ranks share out sequences where attention is fused"):
        made(4, options=AnalyticOptions(attention="unfused"))
    with pytest.raises(InvalidValue, match="8192 tokens, which 3 ranks cannot share out evenly"):
        made(3)
    request = ProfileRequest(
        devices=(replace(NODES.types[0], peer_bandwidth_bytes_s=0.0),), micro_batches=(1,), context_parallel=2
    )
    with pytest.raises(PipebenchError, match="what its peers send each other is not known"):
        profile(model("llm", **LONG), Context(options=AnalyticOptions(), request=request))
