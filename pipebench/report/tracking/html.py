"""A report as one HTML file: no script, nothing loaded from elsewhere, every text escaped."""

from collections.abc import Iterator
from html import escape

from pipebench.report.tracking.blocks import Block, Cell, Heading, Items, Paragraph, Report, Spark, Table
from pipebench.report.tracking.spark import spark_svg

STYLE = """
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


def html(report: Report) -> str:
    """The whole file."""
    inside = "\n".join(part for block in report.blocks for part in _block(block))
    title = escape(report.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{inside}\n"
        "</body>\n</html>\n"
    )


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"<h2>{escape(text)}</h2>"
        case Paragraph(text, tone):
            style = "" if tone == "plain" else f' class="{tone}"'
            yield f"<p{style}>{escape(text)}</p>"
        case Items(lines):
            yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
        case Table():
            yield "".join(_table(block))


def _table(table: Table) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    for column, heading in enumerate(table.headings):
        yield f"<th{_style(table, column)}>{escape(heading)}</th>"
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>"
        for column, cell in enumerate(row):
            yield f"<td{_style(table, column)}>{_cell(cell)}</td>"
        yield "</tr>"
    yield "</tbody></table></div>"


def _style(table: Table, column: int) -> str:
    return ' class="figure"' if column in table.figures else ""


def _cell(cell: Cell) -> str:
    return spark_svg(cell) if isinstance(cell, Spark) else escape(cell)
