"""The comparison table: one block for each regime and workload, 80 columns wide by default."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.bench.prediction import prediction_error
from pipebench.bench.standings.kendall import tau_b
from pipebench.domain.row import Row
from pipebench.report.notes import Notes, who_by_text
from pipebench.report.rounds import merged_rounds, search_time
from pipebench.report.units import percent, rate, seconds, with_readable_bytes
from pipebench.report.width import full_width

FEWEST_RANKED = 3
STATUS_STYLE = {"ok": "green", "infeasible": "yellow", "unsupported": "yellow", "skipped": "dim"}


def print_rows(console: Console, rows: Iterable[Row], cached: Collection[str] = ()) -> None:
    """Print all rows, grouped. Under each block stands what went wrong in it, at the end each notice once.

    cached: keys of rows that come from a store.
    """
    rows = merged_rounds(rows)
    notes = Notes(rows, cached)
    for block in blocks(rows):
        console.print(Text(heading(block[0]), style="bold"), soft_wrap=True)
        console.print(fitting_table(console, block, notes))
        for line in (*failures(block), *agreement(block), *replays(block)):
            console.print(Text(line), soft_wrap=True)
        console.print()
    for line in notes.lines():
        console.print(Text(line), soft_wrap=True)


def blocks(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one regime and problem together, sync first, each in the order in which it first occurs."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.regime, row.problem_id), []).append(row)
    return [found[key] for key in sorted(found, key=lambda key: (key[0] != "sync", key[0]))]


def heading(row: Row) -> str:
    """What a block is about: regime, model, cluster, mini-batch and the proven bound."""
    best = f"bound {seconds(row.bound_s)} ({row.bound_kind})" if row.bound_s else "no bound"
    return f"{row.regime}: {subject(row)} on {row.devices} x {row.cluster}, mini-batch {row.mini_batch}, {best}"


def subject(row: Row) -> str:
    """What a grid calls it; else the profile, or the model where that says more (mmt[branches=8], not mmt)."""
    if "=" in row.workload:
        return row.workload
    if row.model == row.profile:
        return row.profile
    return row.model if row.model.startswith(row.profile) else f"{row.profile} of {row.model}"


def fitting_table(console: Console, rows: Sequence[Row], notes: Notes) -> Table:
    """One block with less space between its columns, or without what planners claim, where it is too wide."""
    whole = table(rows, notes)
    whole.collapse_padding = full_width(console, whole) > console.width
    return whole if full_width(console, whole) <= console.width else table(rows, notes, claimed=False)


def table(rows: Sequence[Row], notes: Notes, *, claimed: bool = True) -> Table:
    """One block. Throughput in samples/s, also as the planner claims; gap = (simulated - bound) / bound.

    Where something was measured: its samples/s, and error = (simulated - measured) / measured seconds.
    """
    measured = any(row.measured_s is not None for row in rows)
    made = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=not claimed)
    made.add_column("planner", overflow="fold")
    made.add_column("scheduler", overflow="fold")
    if claimed:
        made.add_column("claimed", justify="right", no_wrap=True)
    made.add_column("samples/s", justify="right", no_wrap=True)
    if measured:
        made.add_column("measured", justify="right", no_wrap=True)
        made.add_column("error", justify="right", no_wrap=True)
    made.add_column("gap", justify="right", no_wrap=True)
    made.add_column("fit", no_wrap=True)
    made.add_column("search", justify="right", no_wrap=True)
    made.add_column("status", no_wrap=True)
    noted = [notes.marks(row) for row in rows]
    if any(noted):
        made.add_column("notes", no_wrap=True)
    for row, marks in zip(rows, noted, strict=True):
        style = STATUS_STYLE.get(row.status, "red")
        made.add_row(
            escape(row.planner),
            escape(row.scheduler),
            *([rate(row.mini_batch / row.claimed_s if row.claimed_s else None)] if claimed else []),
            rate(row.throughput),
            *([rate(row.measured_throughput), percent(row.measured_error)] if measured else []),
            percent(row.gap),
            "no" if row.fit == "does not fit" else row.fit or "-",
            search_time(row),
            Text(row.status, style=style),
            *([marks] if any(noted) else []),
        )
    return made


def failures(rows: Sequence[Row]) -> list[str]:
    """One line for each reason of trials that failed, with all whom it concerns."""
    wrong = [(row, with_readable_bytes(row.reason)) for row in rows if row.status != "ok" and row.reason]
    return [f"  {who}: {reason}" for reason, who in who_by_text(wrong).items()]


def agreement(rows: Sequence[Row]) -> list[str]:
    """Whether simulation and measurement rank the plans alike, where three or more were measured."""
    both = [(row.simulated_s, row.measured_s) for row in rows]
    known = [
        (round(one * 1e9), round(other * 1e9)) for one, other in both if one is not None and other is not None
    ]
    tau = tau_b(*map(list, zip(*known, strict=True))) if len(known) >= FEWEST_RANKED else None
    if tau is None:
        return []
    return [f"  rank agreement of simulated and measured times (Kendall's tau-b): {tau:.2f}, {len(known)} plans"]


def replays(rows: Sequence[Row]) -> list[str]:
    """How far off simulations with the measured times of tasks are: the part of the errors that is not the
    profile's.
    """
    errors = [prediction_error(row.replayed_s, row.measured_s) for row in rows]
    known = sorted(error for error in errors if error is not None)
    if not known:
        return []
    said = percent(known[0]) if len(known) == 1 else f"{percent(known[0])} to {percent(known[-1])}"
    return [f"  with the measured times of tasks the simulation is {said} off (messages, all-reduces, idle time)"]
