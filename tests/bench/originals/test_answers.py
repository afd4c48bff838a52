"""Values are read as data, and compared to the digits that were printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.originals.comparison import Side, agree
from pipebench.bench.originals.program import answer_of
from tests.bench.originals.test_checkout import ORIGINAL


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("best: 0.25\n", 0.25),
        ("best: 1\nand then best: 2.5e-3, of 7", 0.0025),
        ("best:3;", 3.0),
        ("best:", None),
        ("best: __import__('os')", None),
        ("best: nan", None),
        ("best: inf", None),
        ("worst: 1", None),
        ("", None),
    ],
)
def test_the_number_behind_the_last_such_words(output: str, value: float | None) -> None:
    assert answer_of(ORIGINAL, output) == value


@given(st.floats(1e-9, 1e15), st.integers(2, 12))
def test_a_value_agrees_with_its_printed_digits_and_no_further(value: float, digits: int) -> None:
    printed = float(f"{value:.{digits}g}")
    assert agree(printed, value, digits)
    assert not agree(printed, value * (1 + 3 * 10.0 ** (1 - digits)), digits)


def test_the_median_of_an_odd_and_of_no_runs() -> None:
    assert Side(cpu_s=(3.0, 1.0, 2.0)).median_s == 2.0
    assert Side().median_s is None
