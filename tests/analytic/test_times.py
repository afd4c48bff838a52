"""Times against the roofline worked out by hand."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.costs.shapes.flops import forward_flops
from tests.analytic.profiling import COMPUTE_BOUND, costs_of, run
from tests.models.zoo import model

TRANSFORMER = model("transformer", layers=1)
RESNET = model("resnet50", image_size=64)
NO_OVERHEAD = {"launch_s": 0.0, "r_half": 0.0, "efficiency": 1.0}


@pytest.mark.parametrize("samples", [1, 2, 16])
def test_linear_forward_is_the_larger_of_compute_and_memory_time(samples: int) -> None:
    rows = 256 * samples
    compute = 2 * 1024 * 4096 * rows / (15.7e12 * 0.9 * rows / (rows + 128))
    moved = 4 * (1024 * 4096 + 4096) + 4 * 256 * (1024 + 4096) * samples
    expected = max(compute, moved / 900e9) + 8e-6
    costs = costs_of(run(TRANSFORMER, [samples]), "layers.0.linear1")
    assert costs.forward_s[0] == pytest.approx(expected, rel=1e-11)


def test_last_layer_of_resnet_is_limited_by_its_weights() -> None:
    """One row: 2048 x 1000 weights are read for two FLOP each."""
    bytes_moved = 4 * (2048 * 1000 + 1000) + 4 * (2048 + 1000)
    expected = bytes_moved / 900e9 + 8e-6
    assert costs_of(run(RESNET), "fc").forward_s[0] == pytest.approx(
        max(expected, 2 * 2048 * 1000 / (15.7e12 * 0.9 / 129) + 8e-6), rel=1e-11
    )
    assert costs_of(run(RESNET, r_half=0), "fc").forward_s[0] == pytest.approx(expected, rel=1e-11)


def test_elementwise_kernels_are_limited_by_memory() -> None:
    size = 4 * 64 * 32 * 32
    costs = costs_of(run(RESNET), "relu")
    assert costs.forward_s[0] == pytest.approx(2 * size / 900e9 + 8e-6, rel=1e-11)
    assert costs.backward_s[0] == pytest.approx(3 * size / 900e9 + 8e-6, rel=1e-11)


def test_a_view_costs_nothing() -> None:
    costs = costs_of(run(RESNET), "flatten")
    assert costs.forward_s == costs.backward_s == (0.0,)


@pytest.mark.parametrize("operator", ["layers.0.attention", "layers.0.linear1", "layers.0.linear2"])
def test_contractions_cost_twice_the_forward_backwards(operator: str) -> None:
    costs = costs_of(run(TRANSFORMER, [1, 8]), operator)
    assert costs.backward_s == pytest.approx([2 * seconds for seconds in costs.forward_s], rel=1e-11)


def test_weight_gradient_is_half_of_a_linear_and_the_projections_of_attention() -> None:
    made = run(TRANSFORMER, device=COMPUTE_BOUND, **NO_OVERHEAD)
    linear, attention = costs_of(made, "layers.0.linear1"), costs_of(made, "layers.0.attention")
    assert linear.weight_gradient_s == pytest.approx(linear.forward_s, rel=1e-11)
    projections = 4 * 2 * 256 * 1024 * 1024
    assert attention.weight_gradient_s[0] == pytest.approx(projections / 15.7e12, rel=1e-11)


def test_no_gradient_is_computed_for_the_image() -> None:
    made = run(RESNET)
    first, second = costs_of(made, "conv1"), costs_of(made, "layer1.0.conv1")
    assert first.backward_s == first.weight_gradient_s == pytest.approx(first.forward_s, rel=1e-11)
    assert second.backward_s[0] == pytest.approx(2 * second.forward_s[0], rel=1e-11)


def test_compute_bound_model_runs_at_the_peak_rate() -> None:
    made = run(TRANSFORMER, [4], device=COMPUTE_BOUND, **NO_OVERHEAD)
    flops = sum(forward_flops(operator) for operator in TRANSFORMER.operators)
    total = sum(costs.forward_s[0] for costs in made.costs[0].operators)
    assert total == pytest.approx(4 * flops / 15.7e12, rel=1e-11)


def test_half_the_rate_is_reached_at_r_half() -> None:
    quick = {"launch_s": 0.0, "efficiency": 1.0}
    at_r_half = costs_of(run(TRANSFORMER, device=COMPUTE_BOUND, r_half=256, **quick), "layers.0.linear1")
    at_peak = costs_of(run(TRANSFORMER, device=COMPUTE_BOUND, r_half=0, **quick), "layers.0.linear1")
    assert at_r_half.forward_s[0] == pytest.approx(2 * at_peak.forward_s[0], rel=1e-11)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 512), min_size=2, max_size=6, unique=True).map(sorted),
    r_half=st.floats(0, 1e4),
    launch_s=st.floats(0, 1e-3),
)
def test_larger_micro_batches_take_longer_and_cost_less_a_sample(
    sizes: list[int], r_half: float, launch_s: float
) -> None:
    for costs in run(TRANSFORMER, sizes, r_half=r_half, launch_s=launch_s).costs[0].operators:
        for times in (costs.forward_s, costs.backward_s):
            assert list(times) == sorted(times)
            each = [seconds / size for seconds, size in zip(times, sizes, strict=True)]
            assert all(after <= before * (1 + 1e-9) for before, after in pairwise(each))
        assert all(w <= b for w, b in zip(costs.weight_gradient_s, costs.backward_s, strict=True))
