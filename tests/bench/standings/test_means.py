"""Geometric means in closed form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.standings.statistics import penalised_mean, performance_points, shifted_geometric_mean

positive = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


def test_closed_forms() -> None:
    assert shifted_geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert shifted_geometric_mean([0.0, 0.03], 0.01) == pytest.approx(0.01)  # sqrt(0.01 * 0.04) - 0.01
    assert shifted_geometric_mean([]) is None
    with pytest.raises(ValueError, match="above zero"):
        shifted_geometric_mean([0.0, 1.0])


@given(positive, st.floats(0, 100))
def test_between_the_geometric_and_the_arithmetic_mean(values: list[float], shift: float) -> None:
    plain, shifted = shifted_geometric_mean(values), shifted_geometric_mean(values, shift)
    assert plain is not None
    assert shifted is not None
    assert plain - 1e-9 <= shifted <= math.fsum(values) / len(values) + 1e-9


@given(positive, st.floats(0.1, 10))
def test_scales_with_its_values(values: list[float], factor: float) -> None:
    mean = shifted_geometric_mean(values)
    assert mean is not None
    assert shifted_geometric_mean([factor * v for v in values]) == pytest.approx(factor * mean)


def test_a_failure_is_the_penalty() -> None:
    assert penalised_mean([1.0, None, 3.0], 20.0) == 8.0
    assert penalised_mean([], 20.0) is None


def test_performance_points_are_the_shares_within_each_ratio() -> None:
    assert performance_points([1.0, 1.5, None, 1.0]) == ((1.0, 0.5), (1.5, 0.75))
    assert performance_points([None]) == ()


@given(st.lists(st.none() | st.sampled_from([1.0, 1.5, 2.0, 7.0]), min_size=1, max_size=9))
def test_performance_points_by_counting(ratios: list[float | None]) -> None:
    points = performance_points(ratios)
    for tau, share in points:
        assert share == sum(r is not None and r <= tau for r in ratios) / len(ratios)
    assert {tau for tau, _ in points} == {r for r in ratios if r is not None}
