"""How tables write figures: three digits and a unit; and how wide a table would like to be."""

import re

from rich.console import Console
from rich.table import Table

from pipebench.documents.units import readable_bytes, readable_seconds, three_digits


def seconds(value: float | None) -> str:
    """Seconds with the unit that fits: 1.23 s, 45.6 ms, 789 us."""
    return "-" if value is None else readable_seconds(value)


def gigabytes(value: int | None) -> str:
    """Bytes as GB (10^9), or the smaller unit that fits."""
    return "-" if value is None else readable_bytes(value)


def percent(value: float | None) -> str:
    """A share as a percentage."""
    return "-" if value is None else f"{100 * value:.1f} %"


def rate(value: float | None) -> str:
    """Samples a second."""
    return "-" if value is None else three_digits(value)


def duration(elapsed_s: float) -> str:
    """Seconds, minutes or hours, roughly: 45 s, 12 min, 1.6 h."""
    if elapsed_s < 90:
        return f"{elapsed_s:.0f} s"
    return f"{elapsed_s / 60:.0f} min" if elapsed_s < 5400 else f"{elapsed_s / 3600:.1f} h"


def with_readable_bytes(text: str) -> str:
    """A text with byte counts of seven digits and more written as MB or GB; exact figures in brackets stay."""
    return re.sub(r"(?<!\()\b(\d{7,}) bytes\b", lambda found: readable_bytes(int(found[1])), text)


UNLIMITED = 10_000


def full_width(console: Console, table: Table) -> int:
    """The columns that a table takes when nothing in it is wrapped or cut."""
    return console.measure(table, options=console.options.update(width=UNLIMITED)).maximum
