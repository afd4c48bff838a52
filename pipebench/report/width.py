"""How wide a table would like to be."""

from rich.console import Console
from rich.table import Table

UNLIMITED = 10_000


def full_width(console: Console, table: Table) -> int:
    """The columns that a table takes when nothing in it is wrapped or cut."""
    return console.measure(table, options=console.options.update(width=UNLIMITED)).maximum
