"""Numbers as people read them."""

import pytest

from pipebench.report.units import gigabytes, rate, readable_bytes, seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0 ns"), (1.234, "1.23 s"), (0.0456, "45.6 ms"), (7.89e-4, "789 us"), (5e-9, "5.00 ns")],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (12_000_000_000, "12.0 GB"), (250_000_000, "0.250 GB"), (3_000_000, "3.00 MB")],
)
def test_gigabytes(value: int | None, text: str) -> None:
    assert gigabytes(value) == text


def test_rates_have_three_digits() -> None:
    assert [rate(v) for v in (None, 0.1234, 5.678, 1234.5)] == ["-", "0.123", "5.68", "1,234"]


def test_byte_counts_in_sentences() -> None:
    assert readable_bytes("needs 25378230784 bytes, has 512 bytes") == "needs 25.4 GB, has 512 bytes"
