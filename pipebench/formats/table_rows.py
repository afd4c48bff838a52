"""The rows of a layer table, CSV or JSON, checked cell by cell."""

import csv
import io
import json
import re
from dataclasses import dataclass, field
from typing import cast

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.formats.table_columns import parse_columns, quantity

_BATCH = re.compile(r"#\s*micro_batch\s*[:=]\s*(\d{1,9})\s*")


@dataclass(slots=True)
class Layer:
    """One row, in seconds and bytes of one micro-batch; where: its place, for errors."""

    where: str
    name: str = ""
    kind: str = "layer"
    inputs: list[str] | None = None
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """micro_batch: as the file says, None where it does not."""

    layers: list[Layer]
    micro_batch: int | None


def parse_csv(data: bytes, source: str) -> Table:
    """The rows. Raises PipebenchError: not text, a header that is wrong, a row of another length, a bad cell."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PipebenchError(f"{source}: not text: byte {error.start} is not UTF-8") from None
    lines = text.splitlines()
    batch = next((int(found[1]) for line in lines if (found := _BATCH.fullmatch(line.strip()))), None)
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"]
    if not kept:
        raise PipebenchError(f"{source}: no header")
    separator = max(",;\t", key=kept[0][1].count)
    rows = [(number, next(csv.reader(io.StringIO(line), delimiter=separator))) for number, line in kept]
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
                layer.figures[column.field] = quantity(cell.strip(), column, place)
        layers.append(layer)
    return Table(layers, batch)


def parse_json_table(data: bytes, source: str) -> Table:
    """The rows. Raises PipebenchError: no JSON or cut short, an unknown field, a bad value."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PipebenchError(f"{source}: not valid JSON: {error}") from None
    table = {"layers": content} if isinstance(content, list) else content
    for key in table:
        if key not in ("layers", "micro_batch"):
            raise PipebenchError(f"{source}: unknown field {key!r}", nearest(key, ("layers", "micro_batch")))
    batch, listed = table.get("micro_batch"), table.get("layers")
    if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise PipebenchError(f"{source}: micro_batch is {batch!r}, it must be a whole number")
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
                layer.figures[column.field] = quantity(value, column, place)
        layers.append(layer)
    return Table(layers, batch)


def _fill(layer: Layer, name: str, value: str | list[str]) -> None:
    if name == "name":
        layer.name = cast(str, value)
    elif name == "kind":
        layer.kind = cast(str, value) or "layer"
    elif name == "inputs":
        layer.inputs = value.replace(";", " ").split() if isinstance(value, str) else value
