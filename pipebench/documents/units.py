"""Figures as people read them: three digits and a unit, with the exact figure beside it where it is evidence."""

from typing import SupportsInt

from pipebench.domain.cluster import Cluster


def readable_bytes(amount: int) -> str:
    """Bytes as GB (10^9), from 0.1 of it on, else MB or kB the same way: 12.0 GB, 0.250 GB, 3.00 MB, 999 bytes."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB")):
        if abs(amount) >= factor / 10:
            return f"{three_digits(amount / factor)} {unit}"
    if abs(amount) >= 1000:
        return f"{three_digits(amount / 1e3)} kB"
    return f"{amount} {'byte' if abs(amount) == 1 else 'bytes'}"


def exact_bytes(amount: int) -> str:
    """As `readable_bytes`, the exact number behind it: 12.0 GB (12000000001 bytes)."""
    return readable_bytes(amount) if abs(amount) < 1000 else f"{readable_bytes(amount)} ({amount} bytes)"


def readable_seconds(value: float) -> str:
    """Seconds with the unit that fits: 1.23 s, 45.6 ms, 789 us, 5.00 ns."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{three_digits(value / factor)} {unit}"
    return f"{three_digits(value / 1e-9)} ns"


def readable_share(share: float) -> str:
    """A share in percent, with three digits, so that small ones are told apart: 30.3 %, 8.50 %, 0.0120 %."""
    return f"{three_digits(100 * share)} %"


def exact_ns(instant: SupportsInt) -> str:
    """Nanoseconds with the unit that fits, the exact number behind it: 12.3 ms (12345678 ns), 789 ns."""
    exact = int(instant)
    return f"{exact} ns" if abs(exact) < 1000 else f"{readable_seconds(exact / 1e9)} ({exact} ns)"


def three_digits(value: float) -> str:
    """Three significant digits, never scientific notation; of a thousand and more all before the point."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])  # of the rounded figure: 9.999 is 10.0
    return f"{value:,.{max(0, 2 - exponent)}f}"


def quantity(count: int, noun: str) -> str:
    """A count with its noun, whose plural takes an s: 1 row, 2 rows, 12,000 rows."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def hardware(cluster: Cluster) -> str:
    """The kinds of devices with their memory, in their order: `V100 12 GB`, or `A100 40 GB + V100 16 GB`.

    Of a type's name (`V100-SXM2-16GB`) the part before the first dash, which names the chip.
    """
    kinds = (cluster.type_by_name[name] for name in dict.fromkeys(cluster.devices))
    return " + ".join(f"{kind.name.partition('-')[0]} {kind.memory_bytes / 1e9:.3g} GB" for kind in kinds)
