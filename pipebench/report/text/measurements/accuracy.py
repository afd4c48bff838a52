"""Predicted against measured runs as people read it: groups, choices of layouts, memory, what was left out."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.accuracy.metrics import Errors
from pipebench.bench.accuracy.summary import FEWEST_LAYOUTS, Accuracy, AccuracyRow, Axis, Variant
from pipebench.documents.units import quantity
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import gigabytes, percent, seconds

MOST_LAYOUTS, MOST_NAMED = 12, 3
"""Groups of layouts that are listed, and runs that a line names."""
FAR = 100
"""Times that a prediction is off where a measured time must be of another unit."""
ERROR_COLUMNS = ("runs", "mean |error|", "mean error", "median", "largest")
TITLES: dict[Axis, str] = {"model": "model and devices", "source": "source", "gpus": "GPUs", "degrees": "degrees"}
MEANING = "error: (predicted - measured) / measured; below zero is predicted too fast"


def print_accuracy(console: Console, made: Accuracy, axis: Axis, worst: int) -> None:
    """All of it. axis: along which rows are grouped. worst: rows with the largest errors to list."""
    console.print(Text(head_line(made), style="bold"), soft_wrap=True)
    if made.errors is not None:
        print_line(console, MEANING)
        console.print()
        print_table(console, groups_table(made, axis))
    if made.layouts:
        console.print()
        print_table(console, layouts_table(made, MOST_LAYOUTS))
        if len(made.layouts) > MOST_LAYOUTS:
            print_line(console, f"{len(made.layouts) - MOST_LAYOUTS} more groups are in the JSON and on the page")
    for line in remark_lines(made):
        print_line(console, line)
    if made.variants:
        console.print()
        print_table(console, variants_table(made.variants))
    if made.reasons:
        console.print()
        print_line(console, "not predicted, because of")
        for reason, count in made.reasons.items():
            listed = named_runs([row for row in made.rows if row.reason == reason])
            print_line(console, f"  {reason}, {quantity(count, 'run')}: {listed}")
    if made.errors is not None and worst:
        console.print()
        print_table(console, rows_table("largest errors", worst_rows(made.rows, worst)))
    if said := unfit_line(made):
        console.print()
        print_line(console, said)


def head_line(made: Accuracy) -> str:
    """How many runs, how many of them predicted, and how well."""
    runs = len(made.rows)
    if made.errors is None:
        return f"{quantity(runs, 'run')}, none of them predicted"
    e = made.errors
    return (
        f"{quantity(runs, 'run')}, {e.count} predicted: mean error {percent(e.mean_absolute)} (signed "
        f"{signed(e.mean_signed)}), median {percent(e.median_absolute)}"
    )


def signed(share: float | None) -> str:
    """A share in per cent with its sign."""
    return "-" if share is None else f"{100 * share:+.1f} %"


def error_cells(errors: Errors | None) -> tuple[str, ...]:
    """One text for each of ERROR_COLUMNS."""
    if errors is None:
        return ("0", *("-",) * (len(ERROR_COLUMNS) - 1))
    return (
        str(errors.count),
        percent(errors.mean_absolute),
        signed(errors.mean_signed),
        percent(errors.median_absolute),
        percent(errors.largest_absolute),
    )


def groups_table(made: Accuracy, axis: Axis) -> Table:
    """The errors of each group along an axis."""
    table = _table(TITLES[axis], ERROR_COLUMNS)
    for group in made.groups:
        if group.axis == axis:
            table.add_row(group.name, *error_cells(group.errors))
    return table


def layouts_table(made: Accuracy, most: int) -> Table:
    """Groups of layouts, the largest regret first."""
    table = _table("layouts of", ("runs", "tau-b", "regret"))
    for each in sorted(made.layouts, key=lambda each: -each.regret)[:most]:
        tau = "-" if each.tau is None else f"{each.tau:.2f}"
        table.add_row(each.name, str(each.count), tau, percent(each.regret))
    return table


def remark_lines(made: Accuracy) -> Iterator[str]:
    """What the layouts come to, memory, and intervals."""
    if made.layouts:
        tau = "-" if made.mean_tau is None else f"{made.mean_tau:.2f}"
        yield (
            f"{len(made.layouts)} groups of at least {FEWEST_LAYOUTS} layouts: mean tau-b {tau}; regret, "
            f"how much longer the layout takes that is predicted to be best: mean {percent(made.mean_regret)}, "
            f"90th percentile {percent(made.regret_90)}"
        )
    yield from unit_lines([row.error for row in made.rows if row.error is not None])
    if made.memory is not None:
        e = made.memory.errors
        yield (
            f"memory of {quantity(e.count, 'run')}: mean error {percent(e.mean_absolute)} "
            f"(signed {signed(e.mean_signed)}); the upper end is at or above the measured peak in "
            f"{percent(made.memory.at_or_above)}"
        )
    if made.inferred:
        listed = ", ".join(f"{name} of {quantity(count, 'run')}" for name, count in made.inferred.items())
        yield f"inferred by whoever read the source: {listed}"
    if made.with_interval:
        runs = quantity(made.with_interval, "run")
        yield f"the interval holds the measured time in {percent(made.covered)} of {runs}"
    elif made.errors is not None:
        yield "predictions carry no interval: too few runs like them stand behind the constants"


def unit_lines(errors: Sequence[float]) -> Iterator[str]:
    """A warning where a measured time must be of another unit. errors: (predicted - measured) / measured."""
    far = sum(not 1 / FAR <= 1 + error <= FAR for error in errors)
    if far:
        yield (
            f"warning: the measured time of {quantity(far, 'run')} is {FAR} times off the predicted one and more: "
            "iter_s is in seconds, of one iteration"
        )


def named_runs(rows: Sequence[AccuracyRow]) -> str:
    """The first runs by id, each with its figures or those that it shares with the next; and how many more."""
    shown = [
        ", ".join(row.id for row in alike) + (f" ({detail})" if detail else "")
        for detail, alike in groupby(rows[:MOST_NAMED], lambda row: row.detail)
    ]
    left = len(rows) - MOST_NAMED
    return "; ".join(shown) + (f" and {left} more" if left > 0 else "")


def unfit_line(made: Accuracy) -> str:
    """The runs whose predicted memory is more than their device has; '' where there are none."""
    rows = [row for row in made.rows if row.fit == "does not fit"]
    if not rows:
        return ""
    of = [
        replace(row, detail=f"{gigabytes(row.memory_high_bytes)} of {gigabytes(row.device_memory_bytes)}")
        for row in rows
    ]
    one = len(rows) == 1
    return (
        f"{quantity(len(rows), 'run')} would not fit {'its' if one else 'their'} device as "
        f"{'it is' if one else 'they are'} said: the row or the predicted memory is wrong: {named_runs(of)}"
    )


def variants_table(variants: Sequence[Variant]) -> Table:
    """What was assumed, and the errors with it and with other values."""
    table = Table(box=None, pad_edge=False)
    table.add_column("not said", overflow="fold")
    table.add_column("taken as", overflow="fold")
    for title in ERROR_COLUMNS[:3]:
        table.add_column(title, justify="right", no_wrap=True)
    for each in variants:
        value = each.value if each.usual else f"{each.value} (alternative)"
        _, *figures = error_cells(each.errors)
        table.add_row(each.field, value, str(each.count), *figures[:2])
    return table


def worst_rows(rows: Sequence[AccuracyRow], most: int) -> list[AccuracyRow]:
    """The rows with the largest errors, the largest first."""
    known = [row for row in rows if row.error is not None]
    return sorted(known, key=lambda row: -abs(row.error or 0.0))[:most]


def rows_table(title: str, rows: Sequence[AccuracyRow]) -> Table:
    """Runs, each with its times, error and peaks."""
    table = _table(title, ("measured", "predicted", "error", "peak", "measured peak"))
    for row in rows:
        table.add_row(row.id, *row_cells(row))
    return table


def row_cells(row: AccuracyRow) -> tuple[str, ...]:
    """Measured and predicted time, error, predicted and measured peak."""
    predicted = seconds(row.simulated_s)
    if row.simulated_s and row.low_s is not None and row.high_s is not None:
        predicted += f" ({seconds(row.low_s)} to {seconds(row.high_s)})"
    return (
        seconds(row.measured_s),
        predicted,
        signed(row.error),
        gigabytes(row.memory_bytes),
        gigabytes(row.measured_memory_bytes),
    )


def _table(first: str, others: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, overflow="fold")
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table
