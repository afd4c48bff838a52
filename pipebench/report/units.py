"""Numbers as people read them: three digits and a unit."""

import re


def seconds(value: float | None) -> str:
    """Seconds with the unit that fits: 1.23 s, 45.6 ms, 789 us."""
    if value is None:
        return "-"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{three_digits(value / factor)} {unit}"
    return f"{three_digits(value / 1e-9)} ns"


def gigabytes(value: int | None) -> str:
    """Bytes as GB (10^9), or smaller units below 1 MB."""
    if value is None:
        return "-"
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor / 10 or unit == "kB":
            return f"{three_digits(value / factor)} {unit}"
    return f"{value} B"


def percent(value: float | None) -> str:
    """A share as a percentage."""
    return "-" if value is None else f"{100 * value:.1f} %"


def rate(value: float | None) -> str:
    """Samples a second."""
    return "-" if value is None else three_digits(value)


def three_digits(value: float) -> str:
    """Three significant digits, never scientific notation."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = 0 if magnitude >= 100 else 1 if magnitude >= 10 else 2 if magnitude >= 1 else 3
    return f"{value:,.{decimals}f}"


def readable_bytes(text: str) -> str:
    """A text with byte counts of seven digits and more written as MB or GB."""
    return re.sub(r"\b(\d{7,}) bytes\b", lambda found: gigabytes(int(found[1])), text)
