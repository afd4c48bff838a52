"""What the texts of both kinds of differences share."""

from textwrap import wrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.difference.structure import Change, Figure
from pipebench.report.plan_text import span
from pipebench.report.units import gigabytes, seconds

SECONDS, BYTES = "_s", "_bytes"


def print_sides(console: Console, before: str, after: str) -> None:
    """What is compared with what."""
    for name, text in (("before", before), ("after", after)):
        console.print(Text(f"{name:<8}{text}", style="bold", overflow="fold"))


def print_line(console: Console, line: str, indent: int = 2) -> None:
    """A line of text, continued further in where it is longer than the console is wide."""
    for part in wrap(
        line,
        console.width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    ):
        console.print(Text(part), soft_wrap=True)


def written_change(change: Change) -> str:
    """A field with what it was and what it is."""
    name = change.field.removesuffix(SECONDS).removesuffix(BYTES).replace("_", " ")
    return f"{name} {written(change.field, change.before)} -> {written(change.field, change.after)}"


def written(field: str, value: Figure) -> str:
    """A value in the unit that its field's name says."""
    if value is None:
        return "none"
    if field == "in_flight" and value == 0:
        return "auto"
    if field.endswith(SECONDS) and isinstance(value, int | float):
        return seconds(value)
    if field.endswith(BYTES) and isinstance(value, int):
        return gigabytes(value)
    if field == "devices" and isinstance(value, tuple):
        return span(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in sorted(value.items())) or "none"
    return str(value) or "''"


def relative_change(before: float | None, after: float | None) -> str:
    """(after - before) / before with its sign."""
    if before is None or after is None or not before:
        return "-"
    share = 100 * (after - before) / before
    return "same" if after == before else f"{share:+.2f} %" if abs(share) < 1 else f"{share:+.1f} %"


def plain_table(*titles: str, names: int = 1) -> Table:
    """A table without lines; the first `names` columns fold, the others stand to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for position, title in enumerate(titles):
        if position < names:
            made.add_column(title, overflow="fold")
        else:
            made.add_column(title, justify="right", no_wrap=True)
    return made
