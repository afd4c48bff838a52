"""Ticks are round and cover the values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.report.chart.elements import around, from_zero, name, round_ticks


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(100.0, (0, 20, 40, 60, 80, 100)), (593.0, (0, 200, 400, 600)), (0.7, (0, 0.2, 0.4, 0.6, 0.8))],
)
def test_ticks_by_hand(high: float, ticks: tuple[float, ...]) -> None:
    assert round_ticks(0.0, high) == pytest.approx(ticks)


@given(st.floats(1e-6, 1e9))
def test_ticks_reach_the_value_and_are_few(high: float) -> None:
    ticks = from_zero([high], 0.0, 1.0).ticks
    assert ticks[0] == 0
    assert ticks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(ticks) <= 8


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=30))
def test_every_value_lies_inside_the_axis(values: list[float]) -> None:
    axis = around(values, 10.0, 110.0)
    assert all(10.0 <= axis.at(value) <= 110.0 for value in values)
    assert all(10.0 <= axis.at(tick) <= 110.0 for tick in axis.ticks)


def test_names_of_ticks() -> None:
    assert [name(tick) for tick in (0.0, 0.25, 2.5, 1000.0)] == ["0", "0.25", "2.5", "1,000"]
