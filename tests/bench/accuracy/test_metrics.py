"""Errors, regret and coverage against definitions and closed forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.accuracy.metrics import coverage, errors_of, percentile, regret

TIMES = st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=8)


@given(TIMES)
def test_regret_is_zero_where_the_prediction_is_right_and_never_below(pairs: list[tuple[float, float]]) -> None:
    predicted, measured = [p for p, _ in pairs], [m for _, m in pairs]
    assert regret(measured, measured) == 0
    assert regret([7 * each for each in measured], measured) == 0
    assert 0 <= regret(predicted, measured) <= max(measured) / min(measured) - 1 + 1e-12


def test_regret_by_hand() -> None:
    assert regret([1.0, 2.0, 3.0], [1.2, 1.0, 9.0]) == pytest.approx(0.2)
    assert regret([1.0, 1.0], [1.5, 1.0]) == pytest.approx(0.5)


def test_errors_by_hand() -> None:
    found = errors_of([(1.1, 1.0), (0.5, 1.0), (4.0, 2.0), (2.0, 2.0)])
    assert found is not None
    assert found.count == 4
    assert found.mean_absolute == pytest.approx((0.1 + 0.5 + 1.0 + 0.0) / 4)
    assert found.mean_signed == pytest.approx((0.1 - 0.5 + 1.0) / 4)
    assert found.median_absolute == pytest.approx(0.3)
    assert found.largest_absolute == 1
    assert errors_of([]) is None


@given(st.floats(0.01, 100), st.lists(st.floats(0.1, 10), min_size=1, max_size=9))
def test_one_factor_on_all_is_the_error_of_all(factor: float, measured: list[float]) -> None:
    found = errors_of([(factor * each, each) for each in measured])
    assert found is not None
    for value in (found.mean_absolute, found.median_absolute, found.largest_absolute, abs(found.mean_signed)):
        assert value == pytest.approx(abs(factor - 1), abs=1e-9)


def test_coverage_counts_rows_with_an_interval_only() -> None:
    rows = [(1.0, 1.0, 2.0), (1.0, 2.5, 2.0), (None, 1.0, None), (0.5, 2.0, 2.0)]
    assert coverage(rows) == (3, pytest.approx(2 / 3))
    assert coverage([(None, 1.0, None)]) == (0, None)


def test_a_percentile_is_a_value() -> None:
    assert percentile([float(each) for each in range(1, 11)], 0.9) == 9
    assert percentile([3.0], 0.9) == 3
    assert percentile([], 0.9) is None
