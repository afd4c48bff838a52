"""The planners that there are, as a table of text."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLUMNS = ("name", "paper", "regimes", "replicas", "graph")
GAP = "  "
FEWEST_COLUMNS = 24
"""Room below which a summary says too little to stand in a table."""


def planner_lines(planners: Sequence[Mapping[str, Any]], width: int) -> Iterable[str]:
    """A line for each planner, of at most `width` columns; no word is split.

    The summaries are shortened to the room that the other columns leave. Where the columns have no room, names and
    summaries alone, wrapped.
    """
    rows = [[*map(_text, (planner[name] for name in COLUMNS))] for planner in planners]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    taken = sum(widths) + len(GAP) * (len(COLUMNS) - 1)
    if taken > width:
        for planner in planners:
            yield from _wrapped(planner["name"], planner["summary"], widths[0], width)
        return
    room = width - taken - len(GAP)
    summaries = ["summary", *(planner["summary"] for planner in planners)] if room >= FEWEST_COLUMNS else []
    for place, row in enumerate([list(COLUMNS), *rows]):
        cells = [cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)]
        if summaries:
            cells.append(textwrap.shorten(summaries[place], room, placeholder=" …", break_on_hyphens=False))
        yield GAP.join(cells).rstrip()


def _text(value: Any) -> str:
    """Several values by commas; - for none."""
    return (value if isinstance(value, str) else ", ".join(value)) or "-"


def _wrapped(name: str, summary: str, longest: int, width: int) -> list[str]:
    return textwrap.wrap(
        f"{name.ljust(longest)}{GAP}{summary}",
        width,
        subsequent_indent=" " * (longest + len(GAP)),
        break_long_words=False,
        break_on_hyphens=False,
    )
