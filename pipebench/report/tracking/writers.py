"""A report as HTML, as Markdown, and on a terminal."""

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipebench.documents.printable import markup, printable
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.tracking.blocks import (
    Block,
    BlockCell,
    BlockTable,
    Heading,
    Items,
    Paragraph,
    Spark,
    TrackingReport,
    spark_svg,
    spark_text,
)

STYLE_SHEET = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1f2328;
  background: #ffffff; max-width: 68rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #d8dee4; padding-bottom: .25rem; }
p { margin: .5rem 0; }
.bad, .warn, .good { padding: .55rem .8rem; border-left: 4px solid; border-radius: 2px; }
.bad { background: #ffebe9; border-color: #cf222e; }
.warn { background: #fff8c5; border-color: #9a6700; }
.good { background: #dafbe1; border-color: #1a7f37; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; margin: .5rem 0; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #eaeef2; }
th { font-weight: 600; color: #57606a; white-space: nowrap; }
.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
ul { margin: .4rem 0; padding-left: 1.3rem; }
li { overflow-wrap: anywhere; }
svg { display: block; }
"""


def html_report(report: TrackingReport) -> str:
    """The whole file."""
    inside = "\n".join(part for block in report.blocks for part in _html_block(block))
    title = markup(report.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{STYLE_SHEET}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{inside}\n"
        "</body>\n</html>\n"
    )


def _html_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"<h2>{markup(text)}</h2>"
        case Paragraph(text, tone):
            style = "" if tone == "plain" else f' class="{tone}"'
            yield f"<p{style}>{markup(text)}</p>"
        case Items(lines):
            yield "<ul>" + "".join(f"<li>{markup(line)}</li>" for line in lines) + "</ul>"
        case BlockTable():
            yield "".join(_html_table(block))


def _html_table(table: BlockTable) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    for column, heading in enumerate(table.headings):
        yield f"<th{_cell_style(table, column)}>{markup(heading)}</th>"
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>"
        for column, cell in enumerate(row):
            yield f"<td{_cell_style(table, column)}>{_html_cell(cell)}</td>"
        yield "</tr>"
    yield "</tbody></table></div>"


def _cell_style(table: BlockTable, column: int) -> str:
    return ' class="figure"' if column in table.figures else ""


def _html_cell(cell: BlockCell) -> str:
    return spark_svg(cell) if isinstance(cell, Spark) else markup(cell)


SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!$@])")
CHARACTERS = {"@": "&#64;"}
"""An @ before a name would call somebody."""


def markdown_report(report: TrackingReport) -> str:
    """The whole file."""
    parts = [f"# {_escape(report.title)}", *(part for block in report.blocks for part in _markdown_block(block))]
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"## {_escape(text)}"
        case Paragraph(text, tone):
            yield f"**{_escape(text)}**" if tone in ("bad", "warn", "good") else _escape(text)
        case Items(lines):
            yield "\n".join(f"- {_escape(line)}" for line in lines)
        case BlockTable():
            yield "\n".join(_markdown_table(block))


def _markdown_table(table: BlockTable) -> Iterator[str]:
    yield _markdown_row(table.headings)
    yield (
        "|" + "|".join("--:" if column in table.figures else "---" for column in range(len(table.headings))) + "|"
    )
    for row in table.rows:
        yield _markdown_row(row)


def _markdown_row(cells: Sequence[BlockCell]) -> str:
    return "| " + " | ".join(_markdown_cell(cell) for cell in cells) + " |"


def _markdown_cell(cell: BlockCell) -> str:
    return spark_text(cell) if isinstance(cell, Spark) else _escape(cell)


def _escape(text: str) -> str:
    """The text and nothing else: no markup, no line break, nobody called."""
    line = " ".join(printable(text).split())
    return SPECIAL.sub(lambda found: CHARACTERS.get(found[1], f"\\{found[1]}"), line)


TONE_STYLES = {"bad": "red", "warn": "yellow", "good": "green", "plain": ""}


def print_report(console: Console, report: TrackingReport) -> None:
    """Title, then every block; nothing is cut off."""
    console.print(Text(report.title, style="bold"), soft_wrap=True)
    for block in report.blocks:
        match block:
            case Heading(text):
                console.print()
                console.print(Text(text, style="bold"), soft_wrap=True)
            case Paragraph(text, tone):
                print_line(console, text, TONE_STYLES[tone])
            case Items(lines):
                for line in lines:
                    print_line(console, f"  {line}")
            case BlockTable():
                print_table(console, _text_table(block))


def _text_table(table: BlockTable) -> RichTable:
    made = RichTable(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(table.headings):
        made.add_column(heading, justify="right" if column in table.figures else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(Text(spark_text(cell) if isinstance(cell, Spark) else cell) for cell in row))
    return made
