"""Quantities as text."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.formats.quantities import BYTES, SECONDS, parse_bandwidth, parse_bytes, parse_seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12GB", 12 * 10**9),
        ("12GiB", 12 * 2**30),
        ("1.5 GiB", 3 * 2**29),
        (" 16GB ", 16 * 10**9),
        ("0.1GB", 10**8),
        ("2e3MB", 2 * 10**9),
        ("1B", 1),
        ("7KiB", 7168),
        ("7kB", 7000),
        ("1.5B", 1),
    ],
)
def test_bytes(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


def test_bandwidth_and_seconds() -> None:
    assert parse_bandwidth("12GB/s") == 12e9
    assert parse_bandwidth("1.5 GiB/s") == 1.5 * 2**30
    assert parse_seconds("500us") == 500e-6
    assert parse_seconds("0s") == 0.0
    assert parse_seconds("2min") == 120.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "GB",
        "-1GB",
        "0GB",
        "nanGB",
        "infGB",
        "1,5GB",
        "12gb",
        "12Gb",
        "12GB/s",
        "1e99GB",
        "1..5GB",
        "١GB",
    ],
)
def test_wrong_amounts_name_the_text_and_show_an_example(text: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        parse_bytes(text)
    assert repr(text) in caught.value.message
    assert caught.value.hint == "write it like 12GB or 16GiB"


@pytest.mark.parametrize("text", ["12GB", "12", "0GB/s", "-3GB/s", "12GB/h", "nanGB/s", "12/s", "fast"])
def test_wrong_bandwidths(text: str) -> None:
    with pytest.raises(PipebenchError, match="is not a bandwidth") as caught:
        parse_bandwidth(text)
    assert caught.value.hint == "write it like 12GB/s"


@pytest.mark.parametrize("text", ["5", "-5s", "5 parsec", "1e99h", ""])
def test_wrong_times(text: str) -> None:
    with pytest.raises(PipebenchError, match="is not a time"):
        parse_seconds(text)


@given(whole=st.integers(0, 10**9), places=st.integers(0, 6), unit=st.sampled_from(sorted(BYTES)))
def test_decimal_fractions_are_exact(whole: int, places: int, unit: str) -> None:
    exact = Fraction(whole, 10**places) * BYTES[unit]
    text = f"{whole // 10**places}.{whole % 10**places:0{places}d}{unit}" if places else f"{whole}{unit}"
    if 1 <= exact < 2**63:
        assert parse_bytes(text) == math.floor(exact)
        assert parse_bandwidth(f"{text}/s") == float(exact)
    else:
        with pytest.raises(PipebenchError):
            parse_bytes(text)


@given(st.integers(0, 10**6), st.sampled_from(sorted(SECONDS)))
def test_seconds_are_the_nearest_float(number: int, unit: str) -> None:
    assert parse_seconds(f"{number}{unit}") == float(number * SECONDS[unit])


@given(st.text(max_size=12))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    for parse in (parse_bytes, parse_bandwidth, parse_seconds):
        try:
            assert parse(text) >= 0
        except PipebenchError:
            continue
