"""The difference of two sets of results as people read it, 80 columns wide."""

from collections import Counter
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.bench.difference.results import ResultsDifference, RowChange, RowLabel
from pipebench.report.difference_text import plain_table, print_line, print_sides, relative_change, written_change
from pipebench.report.units import seconds

STYLE = {"better": "green", "worse": "red", "changed": "yellow"}
HASHES = ("plan_id", "schedule_id")
VALUES = ("simulated_s", "estimated_s")


def print_results_difference(console: Console, difference: ResultsDifference) -> None:
    """How many trials are the same, those that are not with what changed, and search times as information."""
    print_sides(console, difference.before, difference.after)
    print_line(console, summary(difference))
    for notice in difference.notices:
        print_line(console, notice)
    changed = sorted((row for row in difference.rows if row.outcome != "same"), key=_problem_of)
    for _, group in groupby(changed, key=_problem_of):
        block = list(group)
        console.print(Text(_heading(block[0].row), style="bold", overflow="fold"))
        console.print(changes_table(block))
        for row in block:
            if details := detail(row):
                print_line(console, f"{row.row.planner}: {details}")
    for name, only in (("before", difference.only_before), ("after", difference.only_after)):
        for heading, group_of_one in groupby(sorted(only, key=_place), key=_heading):
            print_line(console, f"only {name}: {heading}: {', '.join(map(_entrant, group_of_one))}")
    print_line(console, search_line(difference))


def summary(difference: ResultsDifference) -> str:
    """Counts of each outcome."""
    counts = Counter(row.outcome for row in difference.rows)
    told = [f"{counts[outcome]} {outcome}" for outcome in ("same", "better", "worse", "changed")]
    alone = [
        f"{len(only)} only {name}"
        for name, only in (("before", difference.only_before), ("after", difference.only_after))
    ]
    return ", ".join(told + alone)


def changes_table(rows: list[RowChange]) -> Table:
    """Each trial that is not the same: outcome, and time of a mini-batch before and after."""
    made = plain_table("planner", "scheduler", "", "before", "after", "change", names=2)
    for change in rows:
        made.add_row(
            escape(f"{change.row.planner} (adapted)" if change.row.adapted else change.row.planner),
            escape(change.row.scheduler or "-"),
            Text(change.outcome, style=STYLE[change.outcome]),
            seconds(change.value_before_s),
            seconds(change.value_after_s),
            relative_change(change.value_before_s, change.value_after_s),
        )
    return made


def detail(row: RowChange) -> str:
    """The columns beside the compared time that changed, each with both values; hashes are only named."""
    values = row.value_before_s, row.value_after_s
    told = [
        written_change(each)
        for each in row.changes
        if each.field not in HASHES and not (each.field in VALUES and (each.before, each.after) == values)
    ]
    hashes = [each.field.removesuffix("_id") for each in row.changes if each.field in HASHES]
    told += [f"another {name}" for name in hashes]
    return ", ".join(told)


def search_line(difference: ResultsDifference) -> str:
    """Search times, which never make two sets differ."""
    if difference.search_refused:
        return f"search times are not compared: {difference.search_refused}"
    if difference.search_ratio is None:
        return "search times: none to compare"
    trials = "1 trial" if difference.search_count == 1 else f"{difference.search_count} trials"
    return (
        f"search CPU, after / before: {difference.search_ratio:.2f} (geometric mean of {trials}, for information)"
    )


def _problem_of(row: RowChange) -> tuple[str, str]:
    return row.row.regime, row.row.problem_id


def _place(row: RowLabel) -> tuple[str, str]:
    return _heading(row), row.problem_id


def _heading(row: RowLabel) -> str:
    return f"{row.regime}: {row.profile} on {row.devices} x {row.cluster}, mini-batch {row.mini_batch}"


def _entrant(row: RowLabel) -> str:
    return f"{row.planner} x {row.scheduler}" if row.scheduler else row.planner
