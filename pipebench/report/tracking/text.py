"""A report on a terminal."""

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipebench.report.tracking.blocks import Heading, Items, Paragraph, Report, Spark, Table
from pipebench.report.tracking.spark import spark_text

STYLES = {"bad": "red", "warn": "yellow", "good": "green", "plain": ""}


def print_report(console: Console, report: Report) -> None:
    """Title, then every block; nothing is cut off."""
    console.print(Text(report.title, style="bold"), soft_wrap=True)
    for block in report.blocks:
        match block:
            case Heading(text):
                console.print()
                console.print(Text(text, style="bold"), soft_wrap=True)
            case Paragraph(text, tone):
                console.print(Text(text, style=STYLES[tone]), soft_wrap=True)
            case Items(lines):
                for line in lines:
                    console.print(Text(f"  {line}"), soft_wrap=True)
            case Table():
                console.print(_table(block))


def _table(table: Table) -> RichTable:
    made = RichTable(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(table.headings):
        made.add_column(heading, justify="right" if column in table.figures else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(Text(spark_text(cell) if isinstance(cell, Spark) else cell) for cell in row))
    return made
