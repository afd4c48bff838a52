"""Rows as a flat table: cells as people read them and as they sort, CSV, Markdown."""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import msgspec

from pipebench.documents.printable import printable, spreadsheet_text
from pipebench.domain.row import Row
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.blocks import OF_THE_OTHER_REGIME, YARDSTICK, search_time
from pipebench.report.units import gigabytes, percent, rate, seconds

COLUMNS = (
    ("planner", False),
    ("scheduler", False),
    ("regime", False),
    ("problem", False),
    ("devices", True),
    ("claimed", True),
    ("samples/s", True),
    ("gap", True),
    ("fit", False),
    ("memory", True),
    ("bubble", True),
    ("search", True),
    ("status", False),
)
"""Name, and whether it stands to the right."""
STYLES = {"ok": "ok", "infeasible": "soft", "unsupported": "soft", "skipped": "pale"}


@dataclass(frozen=True, slots=True)
class RowCell:
    """value: what the column sorts by, None: the text."""

    text: str
    value: float | str | None = None
    right: bool = False
    style: str = ""


def cells(row: Row, names: ProblemNames) -> list[RowCell]:
    """One for each of COLUMNS. names: of the problems that stand together."""
    claimed = row.mini_batch / row.claimed_s if row.claimed_s else None
    return [
        RowCell(row.planned_by),
        RowCell(row.scheduler),
        RowCell(row.regime),
        RowCell(names.problem(row)),
        RowCell(str(row.devices), row.devices, right=True),
        _figure(rate(claimed), claimed),
        _figure(rate(row.throughput), row.throughput),
        _figure(percent(row.gap), row.gap),
        RowCell("no" if row.fit == "does not fit" else row.fit or "-"),
        _figure(gigabytes(row.memory_bytes), row.memory_bytes),
        _figure(percent(row.bubble), row.bubble),
        _figure(search_time(row), row.search_cpu_s),
        RowCell(row.status, style=STYLES.get(row.status, "failed")),
    ]


def legend(rows: Iterable[Row]) -> list[str]:
    """What the marks of planners' names mean, of those that these rows have."""
    marked = [(row.adapted, row.yardstick) for row in rows]
    said = [f"(adapted): {OF_THE_OTHER_REGIME}"] if any(adapted for adapted, _ in marked) else []
    return said + ([YARDSTICK] if any(yardstick for _, yardstick in marked) else [])


def ladder(row: Row) -> list[tuple[str, str, str]]:
    """The bound and every rung of the claim ladder that is known: name, time, share of the longest in percent."""
    rungs = (
        ("bound", row.bound_s),
        ("claimed", row.claimed_s),
        ("estimated", row.estimated_s),
        ("simulated", row.simulated_s),
        ("replayed", row.replayed_s),
        ("measured", row.measured_s),
    )
    known = [(name, value) for name, value in rungs if value is not None]
    longest = max((value for _, value in known), default=0.0)
    return [(name, seconds(value), f"{100 * value / longest:.1f}") for name, value in known if longest > 0]


def _figure(text: str, value: float | None) -> RowCell:
    return RowCell(text, "" if value is None else value, right=True)


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
    """One table, the columns of the HTML page; below it what marks mean."""
    head = "| " + " | ".join(name for name, _ in COLUMNS) + " |"
    rule = "| " + " | ".join("---:" if right else "---" for _, right in COLUMNS) + " |"
    names = ProblemNames(rows)
    lines = ["| " + " | ".join(_cell(cell.text) for cell in cells(row, names)) + " |" for row in rows]
    below = [line for words in legend(rows) for line in ("", words)]
    return "\n".join([head, rule, *lines, *below]) + "\n"


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value)
    if isinstance(value, str):
        return spreadsheet_text(value)
    return "" if value is None else value


def _cell(text: str) -> str:
    """No column, tag, link or picture of its own."""
    plain = printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
    return plain.replace("\n", " ")
