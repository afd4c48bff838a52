"""A report as Markdown, for job summaries and issues."""

import re
from collections.abc import Iterator, Sequence

from pipebench.report.tracking.blocks import Block, Cell, Heading, Items, Paragraph, Report, Spark, Table
from pipebench.report.tracking.spark import spark_text

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!$@])")
CHARACTERS = {"@": "&#64;"}
"""An @ before a name would call somebody."""


def markdown(report: Report) -> str:
    """The whole file."""
    parts = [f"# {_plain(report.title)}", *(part for block in report.blocks for part in _block(block))]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"## {_plain(text)}"
        case Paragraph(text, tone):
            yield f"**{_plain(text)}**" if tone in ("bad", "warn", "good") else _plain(text)
        case Items(lines):
            yield "\n".join(f"- {_plain(line)}" for line in lines)
        case Table():
            yield "\n".join(_table(block))


def _table(table: Table) -> Iterator[str]:
    yield _row(table.headings)
    yield (
        "|" + "|".join("--:" if column in table.figures else "---" for column in range(len(table.headings))) + "|"
    )
    for row in table.rows:
        yield _row(row)


def _row(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: Cell) -> str:
    return spark_text(cell) if isinstance(cell, Spark) else _plain(cell)


def _plain(text: str) -> str:
    """The text and nothing else: no markup, no line break, nobody called."""
    line = " ".join(text.split())
    return SPECIAL.sub(lambda found: CHARACTERS.get(found[1], f"\\{found[1]}"), line)
