"""What came of running stored trials again."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.bench.rerun import Change, Rerun

STYLE = {"same": "green", "different": "red", "not runnable": "yellow"}


def print_reruns(console: Console, done: Sequence[Rerun]) -> None:
    """A line for each row, what differs under it, and one summary."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "planner", "problem"):
        table.add_column(column, overflow="fold")
    table.add_column("search", justify="right", no_wrap=True)
    table.add_column("mark", no_wrap=True)
    for each in done:
        ratio = "-" if each.search_ratio is None else f"{each.search_ratio:.2f} x"
        table.add_row(
            each.key[:8],
            escape(each.planner),
            escape(each.problem),
            ratio,
            Text(each.mark, style=STYLE[each.mark]),
        )
    console.print(table)
    for each in done:
        if each.reason:
            console.print(Text(f"  {each.key[:8]}: {each.reason}"), soft_wrap=True)
        for change in each.columns:
            console.print(Text(f"  {each.key[:8]}: {_line(change)}"), soft_wrap=True)
    for change in dict.fromkeys(change for each in done for change in each.surroundings):
        console.print(Text(f"  differs now: {_line(change)}"), soft_wrap=True)
    counts = Counter[str](each.mark for each in done)
    console.print(", ".join(f"{counts[mark]} {mark}" for mark in STYLE if counts[mark]))


def _line(change: Change) -> str:
    return f"{change.field}: {change.before} → {change.after}"
