"""The comparison table: one block for each regime and workload, 80 columns wide by default."""

from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.domain.row import Row
from pipebench.report.units import percent, rate, readable_bytes, seconds

STATUS_STYLE = {"ok": "green", "infeasible": "yellow", "unsupported": "yellow", "skipped": "dim"}


def print_rows(console: Console, rows: Iterable[Row]) -> None:
    """Print all rows, grouped; what went wrong with a trial, and notices, stand under its block."""
    ordered = sorted(rows, key=lambda row: (row.regime != "sync", row.regime))
    for (_, _), group in groupby(ordered, key=lambda row: (row.regime, row.problem_id)):
        block = list(group)
        console.print(Text(heading(block[0]), style="bold"), soft_wrap=True)
        console.print(table(block))
        for line in remarks(block):
            console.print(Text(line), soft_wrap=True)
        console.print()


def heading(row: Row) -> str:
    """What a block is about: regime, model, cluster, mini-batch and the proven bound."""
    best = f"bound {seconds(row.bound_s)} ({row.bound_kind})" if row.bound_s else "no bound"
    return f"{row.regime}: {row.profile} on {row.devices} x {row.cluster}, mini-batch {row.mini_batch}, {best}"


def table(rows: list[Row]) -> Table:
    """One block. Throughput in samples/s; gap = (simulated - bound) / bound."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("planner", overflow="fold")
    made.add_column("scheduler", overflow="fold")
    made.add_column("samples/s", justify="right", no_wrap=True)
    made.add_column("gap", justify="right", no_wrap=True)
    made.add_column("fit", no_wrap=True)
    made.add_column("search", justify="right", no_wrap=True)
    made.add_column("status", no_wrap=True)
    for row in rows:
        style = STATUS_STYLE.get(row.status, "red")
        made.add_row(
            escape(name(row)),
            escape(row.scheduler),
            rate(row.throughput),
            percent(row.gap),
            row.fit or "-",
            seconds(row.search_cpu_s),
            Text(row.status, style=style),
        )
    return made


def name(row: Row) -> str:
    """The planner with its options; `adapted` when its partition runs in another regime."""
    return f"{row.planner} (adapted)" if row.adapted else row.planner


def remarks(rows: list[Row]) -> list[str]:
    """One line for each trial that failed, and for each notice."""
    lines = [f"  {name(row)}: {row.reason}" for row in rows if row.status != "ok" and row.reason]
    lines += [f"  {name(row)}: {notice}" for row in rows for notice in row.notices]
    return [readable_bytes(line) for line in dict.fromkeys(lines)]
