"""The comparison table: one block for each regime and workload, with rounds and numbered notices."""

import statistics
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.bench.score import prediction_error
from pipebench.bench.standings import best_rows, fastest_rows
from pipebench.bench.standings.statistics import tau_b
from pipebench.domain.row import Row, planner_name
from pipebench.report.text.tables import print_table
from pipebench.report.units import full_width, percent, rate, seconds, with_readable_bytes

CACHED = "from the store, not run again"
PARALLEL = "ran beside other trials: its search time compares with nothing"
ADAPTED = "adapted from the other regime: only the partition is the planner's"


class Notes:
    """The notices of some rows. A row that is adapted to another regime, comes from a store (its key is among
    the cached) or ran beside others has one that says so.
    """

    def __init__(self, rows: Iterable[Row], cached: Collection[str] = ()) -> None:
        self._cached = cached
        self._who = who_by_text((row, text) for row in rows for text in self._texts(row))
        self._number = {text: number for number, text in enumerate(self._who, start=1)}

    def marks(self, row: Row) -> str:
        """The numbers of a row's notices: 1,3. None for the best of a block, which is another row of it."""
        return ",".join(str(number) for number in sorted({self._number[text] for text in self._texts(row)}))

    def lines(self) -> list[str]:
        """One line a notice, by number."""
        return [f"{self._number[text]}  {who}: {text}" for text, who in self._who.items()]

    def _texts(self, row: Row) -> list[str]:
        own = [
            (row.adapted and row.verdict is not None, ADAPTED),
            (bool(row.key) and row.key in self._cached, CACHED),
            (row.parallel, PARALLEL),
        ]
        return [*(text for holds, text in own if holds), *map(with_readable_bytes, row.notices)]


def who_by_text(said: Iterable[tuple[Row, str]]) -> dict[str, str]:
    """For each distinct text the planners of whose rows it is said, by commas; texts in order of first use."""
    planners: dict[str, dict[str, None]] = {}
    for row, text in said:
        planners.setdefault(text, {})[row.planner] = None
    return {text: ", ".join(names) for text, names in planners.items()}


SAME = ("status", "plan_id", "schedule_id", "simulated_s", "estimated_s", "counters")
RESTLESS = "rounds differ in plan or status: the planner is not deterministic for one seed"
ENOUGH = 3
"""Samples from which a spread says something."""


def merged_rounds(rows: Iterable[Row]) -> tuple[Row, ...]:
    """One row for each trial, in order. The worst round stands for all: a failure, else the slowest plan.

    Its search times are the samples of all rounds; where rounds differ a notice says so.
    """
    rounds: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        entrant = row.planner, row.entered_scheduler, row.adapted, row.coarsen
        key = row.problem_id, *entrant, row.status == "ok" or row.repetition
        rounds.setdefault(key, []).append(row)
    return tuple(_merge_rounds(same) if len(same) > 1 else same[0] for same in rounds.values())


def _merge_rounds(same: list[Row]) -> Row:
    failed = [row for row in same if row.status != "ok"]
    worst = failed[0] if failed else max(same, key=lambda row: row.simulated_s or row.estimated_s or 0.0)
    samples = tuple(sample for row in same for sample in row.search_samples)
    notices = dict.fromkeys(notice for row in same for notice in row.notices)
    if any(getattr(row, name) != getattr(worst, name) for row in same for name in SAME):
        notices[RESTLESS] = None
    if not samples or failed:
        return replace(worst, notices=tuple(notices))
    return replace(
        worst,
        notices=tuple(notices),
        search_samples=samples,
        search_cpu_s=statistics.median(cpu_s for cpu_s, _ in samples),
        search_wall_s=statistics.median(wall_s for _, wall_s in samples),
    )


def search_time(row: Row) -> str:
    """CPU time of the search, with half the interquartile range of its samples where there are enough."""
    median = seconds(row.search_cpu_s)
    if row.search_cpu_s and len(row.search_samples) >= ENOUGH:
        low, _, high = statistics.quantiles((cpu_s for cpu_s, _ in row.search_samples), n=4)
        return f"{median} ±{percent((high - low) / 2 / row.search_cpu_s)}"
    return median


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
        print_table(console, fitting_table(console, [*block, *_best(block)], notes))
        for line in (*failures(block), *agreement(block), *replays(block)):
            console.print(Text(line), soft_wrap=True)
        console.print()
    for line in notes.lines():
        console.print(Text(line), soft_wrap=True)


def _best(block: Sequence[Row]) -> list[Row]:
    """The best of a block as one more row, named by the planner that it is of."""
    best, winners = best_rows(block), fastest_rows(block).values()
    return [
        replace(row, planner=f"{row.planner}: {winner.planner}", notices=(), adapted=False, key="", parallel=False)
        for row, winner in zip(best, winners, strict=True)
    ]


def blocks(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one regime and problem together, sync first, each in the order in which it first occurs."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.regime, row.problem_id), []).append(row)
    return [found[key] for key in sorted(found, key=lambda key: (key[0] != "sync", key[0]))]


def heading(row: Row) -> str:
    """What a block is about: regime, model, cluster, mini-batch and the proven bound."""
    best = f"bound {seconds(row.bound_s)} ({row.bound_kind})" if row.bound_s else "no bound"
    return f"{row.regime}: {subject(row)} on {row.place}, mini-batch {row.mini_batch}, {best}"


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
            escape(planner_name(row.planner, coarsen=row.coarsen)),
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
