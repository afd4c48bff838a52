"""The columns of a layer table: what they are called and in which unit; a quantity without a unit is an error."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.formats.quantities import BYTES, SECONDS

TIMES = {"forward": "forward", "fwd": "forward", "backward": "backward", "bwd": "backward"}
SIZES = {
    "activation": "activation",
    "act": "activation",
    "weight": "weight",
    "weights": "weight",
    "parameter": "weight",
    "saved": "saved",
}
TEXTS = ("name", "kind", "inputs")
NEEDED = ("name", "forward", "backward", "activation", "weight")
_BYTE_UNITS = {"bytes": 1, "byte": 1, **BYTES}
_HEADING = re.compile(r"([A-Za-z]+)(?:[ _]*[\[(]([^\])]+)[\])]|_([A-Za-zµ]+))?")


@dataclass(frozen=True, slots=True)
class Column:
    """field: name, kind, inputs, forward, backward, activation, weight or saved. factor: to seconds or bytes."""

    field: str
    factor: Fraction


def parse_columns(headings: Sequence[str], where: str) -> list[Column]:
    """The columns of a table. Headings read forward_ms, forward [ms] or fwd (ms).

    Raises PipebenchError: an unknown column, a quantity without a unit, a unit that is none, a column twice or
    missing.
    """
    columns: list[Column] = []
    for heading in headings:
        column = _column(heading.strip(), where)
        if column.field in (known.field for known in columns):
            raise PipebenchError(f"{where}: column {column.field!r} occurs twice")
        columns.append(column)
    for field in NEEDED:
        if field not in (column.field for column in columns):
            raise PipebenchError(
                f"{where}: column {field!r} is missing",
                "a table needs name, forward_ms, backward_ms, activation_bytes, weight_bytes (or other units)",
            )
    return columns


def _column(heading: str, where: str) -> Column:
    if heading in TEXTS:
        return Column(heading, Fraction(1))
    found = _HEADING.fullmatch(heading)
    stem = found[1].lower() if found else heading
    known = [*TEXTS, *TIMES, *SIZES]
    if found is None or (stem not in TIMES and stem not in SIZES):
        raise PipebenchError(f"{where}: unknown column {heading[:40]!r}", nearest(stem[:40], known))
    unit = found[2] or found[3]
    units = {name: Fraction(value) for name, value in (SECONDS if stem in TIMES else _BYTE_UNITS).items()}
    if unit is None:
        example = "ms" if stem in TIMES else "bytes"
        raise PipebenchError(f"{where}: column {heading!r} has no unit", f"write {heading}_{example}")
    if unit not in units:
        raise PipebenchError(f"{where}: column {heading!r}: {unit!r} is not one of {', '.join(units)}")
    return Column(TIMES.get(stem) or SIZES[stem], units[unit])


def quantity(value: object, column: Column, where: str) -> float:
    """A cell in seconds or bytes. Raises PipebenchError unless it is a finite number, not negative."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise PipebenchError(f"{where}: {column.field} is {str(value)[:40]!r}, it must be a number, not negative")
    # Fractions, so that 5 us is the float nearest to 5e-6.
    return float(Fraction(str(number)) * column.factor) if number else 0.0
