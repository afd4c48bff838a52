"""Figures in tables and sentences."""

from pipebench.report.units import gigabytes, percent, rate, seconds, with_readable_bytes


def test_what_is_not_known_is_a_dash() -> None:
    assert [seconds(None), gigabytes(None), percent(None), rate(None)] == ["-"] * 4
    assert [seconds(0.0456), gigabytes(12 * 10**9), percent(0.1234)] == ["45.6 ms", "12.0 GB", "12.3 %"]


def test_rates_have_three_digits() -> None:
    assert [rate(v) for v in (0.1234, 5.678, 1234.5)] == ["0.123", "5.68", "1,234"]
    assert [rate(v) for v in (0.007589, 0.05, 0.000098765)] == ["0.00759", "0.0500", "0.0000988"]
    assert [rate(v) for v in (9.999, 99.96, 0.09996)] == ["10.0", "100", "0.100"]


def test_byte_counts_in_sentences() -> None:
    assert with_readable_bytes("needs 25378230784 bytes, has 512 bytes") == "needs 25.4 GB, has 512 bytes"
    exact = "needs 25.4 GB (25378230784 bytes)"
    assert with_readable_bytes(exact) == exact
