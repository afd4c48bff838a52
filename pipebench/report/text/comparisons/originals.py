"""Originals beside the suite's planners, as a table."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.originals.comparison import ComparedSearch, OriginalComparison, Outcome, Side
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import seconds

STYLE: dict[Outcome, str] = {"equal": "green", "differs": "red", "no answer": "yellow", "failed": "red"}
SHOWN_DIGITS = 9


def print_originals(console: Console, made: OriginalComparison) -> None:
    """A row for each problem, what went wrong under it, and what was run."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("input", overflow="fold")
    table.add_column("asked", overflow="fold")
    for column in ("theirs", "ours"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("value", no_wrap=True)
    for column in ("their CPU", "our CPU", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in made.rows:
        table.add_row(
            short_input(row.input),
            row.label,
            value(row.theirs),
            value(row.ours),
            Text(row.outcome, style=STYLE[row.outcome]),
            spent(row.theirs),
            spent(row.ours),
            ratio(row),
        )
    print_table(console, table)
    for row in made.rows:
        for who, side in (("theirs", row.theirs), ("ours", row.ours)):
            if side.reason and row.outcome != "equal":
                print_line(console, f"{' '.join(filter(None, (row.input, row.label)))}: {who}: {side.reason}")
        if row.outcome == "differs" and row.may_differ:
            print_line(console, f"{row.input} {row.label}: {row.may_differ}")
    for line in remarks(made):
        print_line(console, line)


def remarks(made: OriginalComparison) -> list[str]:
    """Where it was run, and what the columns mean."""
    counted = ", ".join(f"{made.count(outcome)} {outcome}" for outcome in STYLE if made.count(outcome))
    at = f"{made.repository} at {made.commit[:12] or 'an unknown commit'}"
    found = [f"{counted}; {at}, {made.finished_at[:10]}, {made.environment.get('cpu', '')}".rstrip(", ")]
    start = f" less {seconds(made.start_s)} for its start" if made.start_s else ""
    found.append(
        f"their CPU: of its process{start}; our CPU: reading the input and the search; ratio: theirs / ours, "
        f"median of pairs; limit {seconds(made.limit_s)}"
    )
    if made.changed:
        found.append(f"it changed {len(made.changed)} files of the checkout: {', '.join(made.changed[:5])}")
    return found


def short_input(name: str) -> str:
    """The part of an input's path that tells it from others."""
    parts = name.removesuffix(".json").split("/")
    return parts[-2] if parts[-1] == "graph.txt" and len(parts) > 1 else "/".join(parts[-2:])


def value(side: Side) -> str:
    """The value of the best plan."""
    return f"{side.value:.{SHOWN_DIGITS}g}" if side.value is not None else "no plan" if side.no_plan else "-"


def spent(side: Side) -> str:
    """CPU seconds; of a run that was stopped what it had used."""
    return f"> {seconds(side.median_s)}" if side.stopped else seconds(side.median_s)


def ratio(row: ComparedSearch) -> str:
    """How many times faster ours is."""
    return "-" if row.ratio is None else f"{row.ratio:.3g}"


def markdown(made: OriginalComparison) -> str:
    """The table as a page has it, with its remarks."""
    lines = [
        "| input | asked | theirs | ours | value | their CPU | our CPU | ratio |",
        "|---|---|---:|---:|---|---:|---:|---:|",
    ]
    for row in made.rows:
        cells = (short_input(row.input), row.label, value(row.theirs), value(row.ours), row.outcome)
        figures = (spent(row.theirs), spent(row.ours), ratio(row))
        lines.append(f"| {' | '.join((*cells, *figures))} |")
    return "\n".join([*lines, "", *(f"{line}." for line in remarks(made))]) + "\n"
