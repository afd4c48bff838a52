"""Layers whose experts ranks share out: what they exchange, hold, keep and run, by hand."""

import math
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.transformer import layer_shape
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import OperatorCosts, Profile
from pipebench.formats.clusters import load_cluster
from pipebench.formats.devices import load_device
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.exchange import all_to_all_s
from pipebench_analytic.kernels.speeds import shipped_speeds
from pipebench_analytic.layer_kernels import LayerKernels
from pipebench_analytic.passes import OperatorPasses
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from pipebench_analytic.speeds import Speeds
from tests.models.zoo import model

FFN = 384
ROUTED: dict[str, Any] = {
    "architecture": "mixtral",
    "layers": 2,
    "hidden": 1024,
    "heads": 8,
    "ffn": FFN,
    "vocab": 1000,
    "sequence": 256,
    "experts": 16,
    "active": 4,
}
NODES = load_cluster("dgx-h100", 16)


def made(ranks: int, framework: str | None = "megatron", **options: Any) -> Profile:
    request = ProfileRequest(
        devices=NODES.types,
        micro_batches=(1, 4),
        precision="bf16",
        framework=None if framework is None else load_framework(framework),
        links=NODES.levels,
        expert_parallel=ranks,
    )
    return profile(model("llm", **ROUTED | options), Context(options=AnalyticOptions(), request=request))


def layer(of: Profile) -> OperatorCosts:
    return of.costs[0].operators[1]


def test_inside_a_node_an_exchange_takes_what_it_takes_there() -> None:
    levels = (LinkLevel(name="node", group=8, bandwidth_bytes_s=1e9),)
    assert all_to_all_s(8e6, 8, levels, lambda size, ways: (ways - 1) / ways * size / 1e9) == pytest.approx(7e-3)
    assert all_to_all_s(8e6, 1, levels, lambda size, ways: 1.0) == 0.0
    assert all_to_all_s(0.0, 8, levels, lambda size, ways: 1.0) == 0.0


def test_between_nodes_each_rank_has_its_share_of_the_cards() -> None:
    """32 ranks in nodes of 8: 24 / 32 of the bytes leave, at 4 GB/s of a node's 32; inside 7 / 32 at 100 GB/s."""
    levels = (
        LinkLevel(name="node", group=8, bandwidth_bytes_s=100e9),
        LinkLevel(name="network", group=64, latency_s=1e-5, bandwidth_bytes_s=50e9, shared_bandwidth_bytes_s=32e9),
    )

    def inside_s(size: float, ways: int) -> float:
        return (ways - 1) / ways * size / 100e9

    assert all_to_all_s(32e6, 32, levels, inside_s) == pytest.approx(24e6 / 4e9 + 1e-5)
    quick = (levels[0], replace(levels[1], shared_bandwidth_bytes_s=None, bandwidth_bytes_s=1e15, latency_s=0.0))
    assert all_to_all_s(32e6, 32, quick, inside_s) == pytest.approx(7e6 / 100e9)


@pytest.mark.parametrize("framework", ["megatron", None])
def test_weights_of_one_rank_are_those_of_its_experts_and_all_else(framework: str | None) -> None:
    whole, shared = made(1, framework), made(4, framework)
    shape = layer_shape(whole.graph.operators[1])
    (name,) = shared.graph.operators[1].parameters
    assert whole.graph.expert_bytes[name] == 0
    assert shared.graph.expert_bytes[name] == 2 * 16 * 3 * 1024 * FFN // 4
    assert shared.graph.parameter_bytes[name] == 2 * (shape.weights() - 12 * 3 * 1024 * FFN)
    for way in layer(shared).alternatives:
        assert way.expert_bytes == shared.graph.expert_bytes[name]
        dense = shape.weights(way.tensor_parallel) - -(-16 * 3 * 1024 * FFN // way.tensor_parallel)
        assert way.parameter_bytes - way.expert_bytes == 2 * dense


@pytest.mark.parametrize("framework", ["megatron", None])
def test_the_router_keeps_its_input_beside_the_copies(framework: str | None) -> None:
    whole, shared = layer(made(1, framework)), layer(made(4, framework))
    more = shared.saved_bytes_per_sample - whole.saved_bytes_per_sample
    assert more == pytest.approx(2 * 256 * 1024, rel=1e-6)
    ways = {way.id: way for way in shared.alternatives}
    split = ways["tp2-sp"].saved_bytes_per_sample
    assert split == pytest.approx(shared.saved_bytes_per_sample / 2, rel=1e-6)


def passes(ranks: int, ways: int = 1, experts: str = "grouped") -> tuple[OperatorPasses, Speeds]:
    framework = replace(load_framework("megatron"), experts=experts)
    speeds = Speeds(NODES.types[0], "bf16", framework, NODES.levels)
    shape = layer_shape(model("llm", **ROUTED).operators[1])
    return LayerKernels(shape, 4, ways, speeds, framework, "flash", 2, ranks).passes(), speeds


def test_products_have_the_rows_of_all_ranks_and_run_as_one_kernel() -> None:
    """4 x 256 tokens pass 4 of 16 experts: 256 rows each, of four ranks 1024 over a quarter of the experts."""
    grouped, speeds = passes(4)
    one_by_one, _ = passes(4, experts="each")
    up, down = speeds.product_s(1024, 2 * FFN, 1024), speeds.product_s(1024, 1024, FFN)
    for each in (4 * up, 4 * down):
        assert each in grouped.forward.kernels
    assert one_by_one.forward.kernels.count(up) == one_by_one.forward.kernels.count(down) == 4
    assert sum(grouped.forward.kernels) == pytest.approx(sum(one_by_one.forward.kernels))
    assert len(one_by_one.forward.kernels) - len(grouped.forward.kernels) == 2 * 3
    alone, _ = passes(1)
    rows = speeds.product_s(256, 2 * FFN, 1024)
    assert alone.forward.kernels.count(rows) == 16


def test_tokens_go_to_their_experts_and_back_in_both_directions() -> None:
    made, speeds = passes(4)
    copies = 2 * 4 * 256 * 4 * 1024.0
    assert made.forward.exchanges == made.inputs.exchanges == [speeds.all_to_all_s(copies, 4)] * 2
    assert made.weights.exchanges == []
    waited = sum(made.forward.exchanges)
    quiet = replace_exchanges(made.forward)
    assert made.forward.seconds(speeds, 1) >= quiet.seconds(speeds, 1)
    assert sum(made.forward.kernels) + waited <= made.forward.seconds(speeds, 1)
    alone, _ = passes(1)
    assert alone.forward.exchanges == []


def replace_exchanges(one: Any) -> Any:
    return type(one)(one.kernels, one.reduces, one.host_s)


def test_under_tensor_parallelism_ranks_have_a_part_of_the_sequence() -> None:
    """Attention alone is split, so one all-reduce is left; a rank sends half as many copies."""
    split, speeds = passes(4, ways=2)
    assert len(split.forward.reduces) == 1
    assert len(passes(1, ways=2)[0].forward.reduces) == 2
    assert split.forward.exchanges == [speeds.all_to_all_s(2 * 4 * 256 * 4 * 1024 / 2, 4)] * 2
    rows = speeds.product_s(512, 2 * FFN, 1024)
    assert 4 * rows in split.forward.kernels


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(PipebenchError, match="expert parallelism under torchtitan is not priced"):
        made(4, "torchtitan")
    with pytest.raises(PipebenchError, match="3 ranks cannot share out its 16 experts"):
        made(3)
    assert any("is modelled, not measured" in note for note in made(4).provenance.notes)
    assert not any("is modelled, not measured" in note for note in made(1).provenance.notes)


def test_a_measured_exchange_inside_a_node_takes_its_curve() -> None:
    """Eight H100 need more for an all-to-all than half of an all-reduce. A rack of 72 was not measured."""
    size, framework = 5e8, load_framework("megatron")
    h100 = Speeds(load_device("H100-SXM5-80GB"), "bf16", framework, NODES.levels)
    known = shipped_speeds()["H100"].collectives
    assert known is not None
    (curve,) = [each for each in known.curves.all_to_all if each.devices == 8]
    assert h100.all_to_all_s(size, 8) == curve.fixed_s + curve.root_s * math.sqrt(size) + size / curve.bytes_s
    assert h100.all_to_all_s(size, 8) > 1.2 * h100.all_reduce_s(size, 8) / 2
    rack = Speeds(load_device("GB200-186GB"), "bf16", framework, load_cluster("gb200-nvl72", 72).levels)
    assert rack.all_to_all_s(size, 64) == rack.all_reduce_s(size, 64) / 2
