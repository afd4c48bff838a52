"""Kendall's tau-b against its definition over ordered pairs, and against known values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.standings.statistics import tau_b

columns = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def by_definition(first: list[int], second: list[int]) -> float | None:
    """The correlation of the signs of all differences (Kendall 1945): sum a b / sqrt(sum a^2 sum b^2)."""
    a = [sign(x - y) for x in first for y in first]
    b = [sign(x - y) for x in second for y in second]
    norm = sum(x * x for x in a) * sum(y * y for y in b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(norm) if norm else None


@given(columns)
def test_it_is_the_correlation_of_signs(pairs: list[tuple[int, int]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    expected = by_definition(first, second)
    assert tau_b(first, second) == (None if expected is None else pytest.approx(expected))


@given(columns)
def test_reversing_one_column_turns_the_sign(pairs: list[tuple[int, int]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    tau = tau_b(first, second)
    assert tau_b([-a for a in first], second) == (None if tau is None else pytest.approx(-tau))
    assert tau_b(second, first) == tau


def test_known_values() -> None:
    assert tau_b([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) == pytest.approx(-0.47140452079103173)  # SciPy's manual
    assert tau_b([1, 2, 3, 4], [10, 20, 30, 40]) == 1.0
    assert tau_b([1, 2, 3, 4], [4, 3, 2, 1]) == -1.0
    assert tau_b([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)
    assert tau_b([1, 1, 1], [1, 2, 3]) is None
