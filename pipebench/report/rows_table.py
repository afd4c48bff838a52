"""Rows as a flat table: CSV with every field, Markdown with what the terminal shows."""

import csv
import json
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

import msgspec

from pipebench.domain.row import Row
from pipebench.report.html.cells import COLUMNS, cells

OPENS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows_csv(rows: Iterable[Row]) -> str:
    """Every field of every row, lists and maps as JSON. What a spreadsheet would run gets a quote in front."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(Row.__struct_fields__)
    for row in rows:
        plain = msgspec.to_builtins(row)
        writer.writerow([_flat(plain[name]) for name in Row.__struct_fields__])
    return out.getvalue()


def rows_markdown(rows: Sequence[Row]) -> str:
    """One table, the columns of the HTML page."""
    head = "| " + " | ".join(name for name, _ in COLUMNS) + " |"
    rule = "| " + " | ".join("---:" if right else "---" for _, right in COLUMNS) + " |"
    lines = ["| " + " | ".join(_cell(cell.text) for cell in cells(row)) + " |" for row in rows]
    return "\n".join([head, rule, *lines]) + "\n"


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value)
    if isinstance(value, str) and value.startswith(OPENS_A_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
