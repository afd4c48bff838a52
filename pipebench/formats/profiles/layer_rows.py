"""The columns and rows of a layer table, CSV or JSON, checked cell by cell; a quantity has a unit."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from pipebench.documents.decoding import bounded_json, require_size, require_unique_keys
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import LARGEST_TABLE_BYTES, MOST_BYTES, MOST_SECONDS, MOST_UNTYPED_ELEMENTS
from pipebench.formats.quantities import BYTES, SECONDS
from pipebench.formats.typed_text import parse_json_part, table_text

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
class LayerColumn:
    """field: name, kind, inputs, forward, backward, activation, weight or saved. factor: to seconds or bytes."""

    field: str
    factor: Fraction


def parse_columns(headings: Sequence[str], where: str) -> list[LayerColumn]:
    """The columns of a table. Headings read forward_ms, forward [ms] or fwd (ms).

    Raises PipebenchError: an unknown column, a quantity without a unit, a unit that is none, a column twice or
    missing.
    """
    columns: list[LayerColumn] = []
    for heading in headings:
        column = _column(heading.strip(), where)
        if column.field in (known.field for known in columns):
            raise PipebenchError(f"{where}: column {column.field!r} occurs twice")
        columns.append(column)
    for name in NEEDED:
        if name not in (column.field for column in columns):
            raise PipebenchError(
                f"{where}: column {name!r} is missing",
                "a table needs name, forward_ms, backward_ms, activation_bytes, weight_bytes (or other units)",
            )
    return columns


def _column(heading: str, where: str) -> LayerColumn:
    if heading in TEXTS:
        return LayerColumn(heading, Fraction(1))
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
    return LayerColumn(TIMES.get(stem) or SIZES[stem], units[unit])


_NUMBER = re.compile(r"[+-]?(?:\d{1,99}\.?\d{0,99}|\.\d{1,99})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def quantity(value: object, column: LayerColumn, where: str) -> float:
    """A cell in seconds or bytes. where: its place.

    Raises PipebenchError unless it is a number in ASCII digits, not negative, that a profile may have.
    """
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise PipebenchError(f"{where} is {str(value)[:40]!r}, it must be a number, not negative")
    # Fractions, so that 5 us is the float nearest to 5e-6.
    exact = Fraction(str(number)) * column.factor
    most, unit = (MOST_SECONDS, "s") if column.field in TIMES else (MOST_BYTES, "bytes")
    if exact > most:
        raise PipebenchError(f"{where} is {text[:40]!r}, it must be at most {most:g} {unit}")
    return float(exact)


_SAYS_BATCH = re.compile(
    r"#+\s*micro[\s_-]?batch(?:es)?(?:[\s_-]?size)?(?:\s*\([^()]*\))?\s*[:=]\s*(.*?)\s*", re.IGNORECASE
)
"""A comment that is about the samples of the figures, however it is written."""
_BATCH = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(slots=True)
class Layer:
    """One row, in seconds and bytes of one micro-batch; where: its place, for errors."""

    where: str
    name: str = ""
    kind: str = "layer"
    inputs: list[str] | None = None
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LayerRows:
    """micro_batch: as the file says, None where it does not."""

    layers: list[Layer]
    micro_batch: int | None


def parse_csv(data: bytes, source: str) -> LayerRows:
    """The rows. Raises PipebenchError: not text, a header that is wrong, a row of another length, a bad cell."""
    lines = table_text(data, source).split("\n")
    batch = _batch_of(lines, source)
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"]
    if not kept:
        raise PipebenchError(f"{source}: no header")
    separator = max(",;\t", key=kept[0][1].count)
    rows = [(number, _cells(line, separator, f"{source}: line {number}")) for number, line in kept]
    where = f"{source}: line {rows[0][0]}"
    columns = parse_columns(rows[0][1], where)
    layers: list[Layer] = []
    for number, cells in rows[1:]:
        place = f"{source}: line {number}"
        if len(cells) != len(columns):
            raise PipebenchError(f"{place}: {len(cells)} cells, the header has {len(columns)}")
        layer = Layer(place)
        for column, cell in zip(columns, cells, strict=True):
            _fill(layer, column.field, cell.strip())
            if column.field not in ("name", "kind", "inputs"):
                layer.figures[column.field] = quantity(cell.strip(), column, f"{place}: {column.field}")
        layers.append(layer)
    return LayerRows(layers, batch)


def _batch_of(lines: Sequence[str], source: str) -> int | None:
    """What a comment says of the samples that the figures are for. Raises PipebenchError for what is no number."""
    said = [
        (number, found[1])
        for number, line in enumerate(lines, 1)
        if (found := _SAYS_BATCH.fullmatch(line.strip()))
    ]
    for number, text in said:
        if not _BATCH.fullmatch(text):
            what = f"{source}: line {number}: micro_batch is {text[:40]!r}, it must be a whole number of samples"
            raise PipebenchError(what, "write # micro_batch: 8, or begin the comment with another word")
    if len({int(text) for _, text in said}) > 1:
        raise PipebenchError(f"{source}: line {said[-1][0]}: micro_batch is said twice, with two numbers")
    return int(said[0][1]) if said else None


def _cells(line: str, separator: str, where: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line), delimiter=separator))
    except csv.Error as error:
        raise PipebenchError(f"{where}: {error}") from None


def parse_json_table(data: bytes, source: str) -> LayerRows:
    """The rows. Raises PipebenchError: no JSON or cut short, an unknown field, a bad value."""
    require_size(data, LARGEST_TABLE_BYTES, source)
    text = bounded_json(data, source, MOST_UNTYPED_ELEMENTS)
    content = parse_json_part(text, Any, source)
    require_unique_keys(text, source)
    table: Any = {"layers": content} if isinstance(content, list) else content
    if not isinstance(table, dict):
        raise PipebenchError(f"{source}: neither a list of layers nor an object that has one")
    for key in table:
        if key not in ("layers", "micro_batch"):
            raise PipebenchError(f"{source}: unknown field {key!r}", nearest(key, ("layers", "micro_batch")))
    batch, listed = table.get("micro_batch"), table.get("layers")
    if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise PipebenchError(f"{source}: micro_batch is {str(batch)[:40]!r}, it must be a whole number")
    if not isinstance(listed, list):
        raise PipebenchError(f"{source}: layers is not a list")
    layers: list[Layer] = []
    for position, row in enumerate(listed):
        place = f"{source}: layers[{position}]"
        if not isinstance(row, dict):
            raise PipebenchError(f"{place} is not an object")
        layer = Layer(place)
        for (key, value), column in zip(row.items(), parse_columns(list(row), place), strict=True):
            if column.field in ("name", "kind", "inputs"):
                good = isinstance(value, str) or (
                    column.field == "inputs" and isinstance(value, list) and all(isinstance(v, str) for v in value)
                )
                if not good:
                    raise PipebenchError(f"{place}: {key} is {str(value)[:40]!r}, it must be text")
                _fill(layer, column.field, value)
            else:
                layer.figures[column.field] = quantity(value, column, f"{place}.{key}")
        layers.append(layer)
    return LayerRows(layers, batch)


def _fill(layer: Layer, name: str, value: str | list[str]) -> None:
    if name == "name":
        layer.name = cast(str, value)
    elif name == "kind":
        layer.kind = cast(str, value) or "layer"
    elif name == "inputs":
        layer.inputs = value.replace(";", " ").split() if isinstance(value, str) else value
