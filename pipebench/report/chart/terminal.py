"""What a terminal shows, as a picture: each run of letters stands where its columns are, whatever the font."""

import re
from collections.abc import Callable, Iterator
from html import escape
from io import StringIO

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from pipebench.report.chart.colours import CURVES, INK, STROKE
from pipebench.report.chart.elements import SIZE, document
from pipebench.report.text.console import SafeConsole

FONT = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"
LETTER, LINE = 7.25, 17.0
"""Pixels of one column and of one line at SIZE."""
MARGIN = 14.0
WARNING = CURVES[1]
RUN = re.compile(r"\S+(?: \S+)*")


def terminal_svg(show: Callable[[SafeConsole], None], columns: int, title: str) -> str:
    """What `show` prints on a terminal of so many columns. Characters that a terminal obeys are made visible.

    The letters stay letters: they can be searched, copied and read aloud.
    """
    console = SafeConsole(
        file=StringIO(),
        record=True,
        width=columns,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        _environ={},
    )
    show(console)
    lines = Text.from_ansi(console.export_text(styles=True)).split("\n", allow_blank=True)
    while lines and not lines[-1].plain.strip():
        lines.pop()
    widest = max((cell_len(line.plain.rstrip()) for line in lines), default=1)
    drawn = [_line(console, number, line) for number, line in enumerate(lines)]
    inside = [f'<g font-family="{FONT}">', *filter(None, drawn), "</g>"]
    return document(2 * MARGIN + widest * LETTER, 2 * MARGIN + len(lines) * LINE, title, inside)


def _line(console: SafeConsole, number: int, line: Text) -> str:
    baseline = MARGIN + number * LINE + SIZE
    return "".join(
        f'<text x="{MARGIN + column * LETTER:.2f}" y="{baseline:.1f}" textLength="{cell_len(words) * LETTER:.2f}"'
        f"{_look(style)}>{escape(words, quote=False)}</text>"
        for column, words, style in _runs(console, line)
    )


def _runs(console: SafeConsole, line: Text) -> Iterator[tuple[int, str, Style]]:
    """Runs of words of one style with single spaces between them, and the column in which each begins."""
    column = 0
    for segment in line.render(console):
        for found in RUN.finditer(segment.text):
            yield column + cell_len(segment.text[: found.start()]), found[0], segment.style or Style.null()
        column += cell_len(segment.text)


def _look(style: Style) -> str:
    colour = WARNING if style.color else STROKE if style.dim else INK
    return f' fill="{colour}"' + (' font-weight="bold"' if style.bold else "")
