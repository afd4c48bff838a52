"""Figures as people read them."""

import pytest

from pipebench.documents.units import exact_bytes, exact_ns, readable_bytes, readable_seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 ns"), (1.234, "1.23 s"), (0.0456, "45.6 ms"), (7.89e-4, "789 us"), (5e-9, "5.00 ns")],
)
def test_seconds(value: float, text: str) -> None:
    assert readable_seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_000_000_000, "12.0 GB"),
        (250_000_000, "0.250 GB"),
        (99_000_000, "99.0 MB"),
        (3_000_000, "3.00 MB"),
        (99_000, "99.0 kB"),
        (1000, "1.00 kB"),
        (999, "999 bytes"),
        (1, "1 byte"),
        (0, "0 bytes"),
    ],
)
def test_bytes(value: int, text: str) -> None:
    assert readable_bytes(value) == text


def test_evidence_has_the_exact_figure_too() -> None:
    assert exact_bytes(12_000_000_001) == "12.0 GB (12000000001 bytes)"
    assert exact_bytes(1) == "1 byte"
    assert exact_ns(12_345_678) == "12.3 ms (12345678 ns)"
    assert exact_ns(999) == "999 ns"
