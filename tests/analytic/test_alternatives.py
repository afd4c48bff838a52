"""Tensor-parallel and recomputed operators."""

import pytest
from msgspec.structs import replace

from pipebench.domain.graph import OperatorGraph
from tests.analytic.profiling import COMPUTE_BOUND, ENDLESS, NEARLY, V100, costs_of, run
from tests.models.zoo import model

LAYER = model("transformer", layers=1)
RESNET = model("resnet50", image_size=64)
NO_OVERHEAD = {"launch_s": 0.0, "r_half": 0.0, "efficiency": 1.0}
TOKENS = 4 * 256 * 1024


def identifiers(graph: OperatorGraph, operator: str, **options: int | bool) -> list[str]:
    return [a.id for a in costs_of(run(graph, **options), operator).alternatives]


def test_degrees_are_powers_of_two_that_divide() -> None:
    assert identifiers(LAYER, "layers.0.attention") == ["tp2", "tp4", "tp8", "recompute"]
    assert identifiers(LAYER, "layers.0.linear1", max_tensor_parallel=4) == ["tp2", "tp4"]
    odd = model("transformer", layers=1, hidden=60, heads=6, ffn=20)
    assert identifiers(odd, "layers.0.attention", recompute=False) == ["tp2"]
    assert identifiers(odd, "layers.0.linear2") == ["tp2", "tp4"]


def test_they_can_be_turned_off() -> None:
    made = run(LAYER, max_tensor_parallel=1, recompute=False)
    assert all(costs.alternatives == () for costs in made.costs[0].operators)


def test_no_link_rate_means_no_tensor_parallelism() -> None:
    made = run(LAYER, device=replace(V100, peer_bandwidth_bytes_s=0.0))
    assert [a.id for a in costs_of(made, "layers.0.attention").alternatives] == ["recompute"]


@pytest.mark.parametrize("operator", ["layers.0.attention", "layers.0.linear1", "layers.0.linear2"])
@pytest.mark.parametrize("ways", [2, 4, 8])
def test_with_endless_links_work_is_divided(operator: str, ways: int) -> None:
    costs = costs_of(run(LAYER, [4], device=COMPUTE_BOUND, **NO_OVERHEAD), operator)
    split = costs.alternative(f"tp{ways}")
    assert split.tensor_parallel == ways
    assert split.forward_s[0] == pytest.approx(costs.forward_s[0] / ways, rel=NEARLY)
    assert split.backward_s[0] == pytest.approx(costs.backward_s[0] / ways, rel=NEARLY)


@pytest.mark.parametrize("ways", [2, 4, 8])
def test_a_layer_all_reduces_twice_in_each_direction(ways: int) -> None:
    """Megatron-LM section 3: one all-reduce for the attention, one for the feed-forward part."""
    instant = replace(V100, memory_bandwidth_bytes_s=ENDLESS, peak_flops={"fp32": ENDLESS})
    made = run(LAYER, [3], device=instant, **NO_OVERHEAD)
    layer = [costs.alternative(f"tp{ways}") for costs in made.costs[0].operators]
    one = 2 * (ways - 1) / ways * 3 * TOKENS / 120e9
    assert sum(a.forward_s[0] for a in layer) == pytest.approx(2 * one, rel=NEARLY)
    assert sum(a.backward_s[0] for a in layer) == pytest.approx(2 * one, rel=NEARLY)
    assert sum(a.collective_bytes for a in layer) == 2 * TOKENS


def test_memory_of_a_tensor_parallel_layer() -> None:
    """Inputs of attention and of the first linear are whole on every device, all else is divided."""
    made = run(LAYER)
    kept = [costs.alternative("tp4").saved_bytes_per_sample / TOKENS for costs in made.costs[0].operators]
    assert kept == [1 + 8 / 4, 1, 4 / 4]
    attention, linear1, _ = (costs.alternative("tp4").parameter_bytes for costs in made.costs[0].operators)
    assert attention == 4 * 4 * 1024**2 / 4
    assert linear1 == (1024 + 1) * 4096


def test_a_lone_linear_gathers_its_output() -> None:
    costs = costs_of(run(RESNET, device=replace(V100, peer_bandwidth_bytes_s=1e6), **NO_OVERHEAD), "fc")
    alternative = costs.alternative("tp2")
    gather, reduce = 4 * 1000 / 2 / 1e6, 2 * 4 * 2048 / 2 / 1e6
    assert alternative.forward_s[0] == pytest.approx(gather, rel=1e-2)
    assert alternative.backward_s[0] == pytest.approx(reduce, rel=1e-2)


def test_the_first_convolution_reduces_no_gradient_of_the_image() -> None:
    costs = costs_of(run(RESNET, device=replace(V100, peer_bandwidth_bytes_s=1e3), **NO_OVERHEAD), "conv1")
    alternative = costs.alternative("tp2")
    assert alternative.forward_s[0] > 100 * costs.forward_s[0]
    assert alternative.backward_s[0] < costs.backward_s[0]


def test_pairs_of_linears_do_not_overlap() -> None:
    """Layers without attention between them would chain four linears: 1-2 and 3-4 are pairs, 2-3 is not."""
    from pipebench_analytic.alternatives import linear_pairs
    from pipebench_models.graph_builder import GraphBuilder
    from pipebench_models.operators import linear

    graph = GraphBuilder("chain")
    x = graph.input("x", 8, 16)
    for name in ("l1", "l2", "l3", "l4", "l5"):
        x = linear(graph, name, x, 16)
    assert linear_pairs(graph.graph()) == {0: 1, 2: 3}


def test_recomputing_keeps_inputs_and_runs_the_forward_again() -> None:
    costs = costs_of(run(LAYER, [1, 4]), "layers.0.attention")
    again = costs.alternative("recompute")
    assert again.recompute
    assert again.saved_bytes_per_sample == TOKENS
    assert again.forward_s == costs.forward_s
    both = [f + b for f, b in zip(costs.forward_s, costs.backward_s, strict=True)]
    assert again.backward_s == pytest.approx(both, rel=1e-11)
    assert again.parameter_bytes == 4 * 4 * 1024**2


def test_recomputing_is_offered_only_where_it_frees_memory() -> None:
    made = run(RESNET)
    assert not [c.operator for c in made.costs[0].operators for a in c.alternatives if a.recompute]
