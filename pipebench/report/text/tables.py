"""Tables on consoles of any width: names keep enough letters to be read, and no figure is cut."""

from textwrap import wrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

NAME_LETTERS = 10
"""The fewest columns in which a folded name is read; a shorter name takes what it has."""
INDENT = "  "


def print_table(console: Console, table: Table) -> None:
    """The table, or where the console is too narrow for it each row as a name and lines of its figures."""
    for column in table.columns:
        widest = max((console.measure(cell).maximum for cell in (column.header, *column.cells)), default=0)
        column.min_width = widest if column.no_wrap else min(NAME_LETTERS, widest)
    if table.row_count == 0 or _fewest_columns(table) <= console.width:
        console.print(table)
        return
    for line in _records(console, table):
        console.print(line, overflow="fold")


def print_line(console: Console, line: str, style: str = "") -> None:
    """A line of words. What does not fit goes on below, further to the right; words stay whole."""
    indent = " " * (len(line) - len(line.lstrip()) + len(INDENT))
    wrapped = wrap(line, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    for part in wrapped:
        console.print(Text(part, style=style), soft_wrap=True)


def print_fact(console: Console, name: str, words: str, indent: int) -> None:
    """A name, and beside it words that begin at a column; what does not fit goes on below there."""
    lead = " " * indent
    wrapped = wrap(
        words,
        max(console.width, indent + NAME_LETTERS),
        initial_indent=f"{name:<{indent}}",
        subsequent_indent=lead,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for part in wrapped or [name]:
        console.print(Text(part), soft_wrap=True)


def _fewest_columns(table: Table) -> int:
    """What a table without lines takes at least, its columns' least widths known; rich would not break words."""
    gaps = (len(table.columns) - 1) * (1 if table.collapse_padding else 2)
    return gaps + sum(column.min_width or 0 for column in table.columns)


def _records(console: Console, table: Table) -> list[Text]:
    """Of each row the first cell, and below it the others with their titles, as many a line as fit.

    A first cell that is a number has its title, too.
    """
    titles = [" ".join(_plain(console, column.header).split()) for column in table.columns]
    lines: list[Text] = []
    for cells in zip(*(list(column.cells) for column in table.columns), strict=True):
        first, *others = (_plain(console, cell) for cell in cells)
        lines.append(Text(f"{titles[0]} {first}" if first.isdecimal() else first, style="bold"))
        line = ""
        for title, value in zip(titles[1:], others, strict=True):
            if not value:
                continue
            part = f"{title} {value}".strip()
            if line and len(INDENT) + len(line) + len(part) + 2 > console.width:
                lines.append(Text(INDENT + line))
                line = ""
            line = f"{line}  {part}" if line else part
        if line:
            lines.append(Text(INDENT + line))
    return lines


def _plain(console: Console, cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else console.render_str(str(cell)).plain
