"""A calibration as people read it: constants before and after, errors before, after and on runs not seen."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.accuracy.metrics import Errors
from pipebench.bench.calibration.outcome import FEWEST_SHAPES, Outcome
from pipebench.domain.framework import FEWEST_RESIDUALS
from pipebench.domain.tuning import CONSTANTS
from pipebench.report.text.measurements.accuracy import ERROR_COLUMNS, error_cells, unit_lines, variants_table
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import seconds


def print_outcome(console: Console, made: Outcome) -> None:
    """All of it."""
    console.print(Text(head_line(made), style="bold"), soft_wrap=True)
    console.print()
    print_table(console, constants_table(made))
    console.print()
    print_table(console, errors_table(made))
    if made.left_out:
        console.print()
        print_table(console, left_out_table(made))
    if made.variants:
        console.print()
        print_table(console, variants_table(made.variants))
    for line in remark_lines(made):
        print_line(console, line)


def head_line(made: Outcome) -> str:
    """How many runs of what."""
    runs, shapes = len(made.runs), made.shapes
    models = f"{shapes} model shape{'s' * (shapes > 1)}"
    return f"{runs} run{'s' * (runs > 1)} of {made.framework} on {made.device}, {models}"


def constants_table(made: Outcome) -> Table:
    """Each constant: before, after, the range of the folds and the stated one."""
    table = Table(box=None, pad_edge=False)
    table.add_column("constant", no_wrap=True)
    for title in ("before", "after", "folds", "range"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in made.constants:
        known = CONSTANTS[each.name]
        spread = "-" if each.least is None else f"{each.least:.3g} to {each.largest:.3g}"
        table.add_row(
            each.name,
            f"{each.usual:.4g}",
            f"{each.value:.4g}" if each.moved else "not told",
            spread,
            f"{known.low:g} to {known.high:g}",
        )
    return table


def errors_table(made: Outcome) -> Table:
    """Errors before and after, and of runs and shapes that a fit did not see."""
    table = Table(box=None, pad_edge=False)
    table.add_column("constants", overflow="fold")
    for title in ERROR_COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    alone = "each run by a fit without it"
    if made.groups and made.groups < len(made.runs):
        alone = f"each run by a fit without its group ({made.groups} groups)"
    rows: tuple[tuple[str, Errors | None], ...] = (
        ("as they are", made.before),
        ("fitted, on the same runs", made.after),
        (alone, made.unseen),
        ("each run by a fit without its shape", made.unseen_shapes),
    )
    for name, errors in rows:
        if errors is not None:
            table.add_row(name, *error_cells(errors))
    return table


def left_out_table(made: Outcome) -> Table:
    """What runs are off by under fits without their shape: by shape, then by the groups that intervals are of."""
    table = Table(box=None, pad_edge=False)
    table.add_column("by a fit without its shape", overflow="fold")
    for title in (*ERROR_COLUMNS, "90 % lie"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in (*made.left_out, *made.interval_groups):
        spread = f"{100 * (each.low - 1):+.1f} % to {100 * (each.high - 1):+.1f} %"
        table.add_row(each.name, *error_cells(each.errors), spread)
    return table


def interval_line(made: Outcome) -> str:
    """The interval of predictions with these constants, or why they have none."""
    if made.spread is None:
        return (
            "predictions with these constants carry no interval: that takes "
            f"{FEWEST_RESIDUALS} runs that were left out of a fit"
        )
    low, high = (f"{100 * (end - 1):+.1f} %" for end in (made.spread.low, made.spread.high))
    unseen = "their shapes" if made.spread.left_out == "shapes" else "them, but others of their shapes"
    return (
        f"predictions with these constants carry the interval {low} to {high}: 90 % of {made.spread.count} runs, "
        f"by fits that did not see {unseen}"
    )


def remark_lines(made: Outcome) -> Iterator[str]:
    """What was not fitted, and whether the constants are better than the usual ones."""
    for run in made.runs:
        if run.traced is not None:
            yield (
                f"traced {run.id}, rank {run.traced.rank}: kernels {seconds(run.traced.kernels_s)} of "
                f"{seconds(run.traced.iteration_s)} ({seconds(run.kernels_before_s)} simulated before, "
                f"{seconds(run.kernels_after_s)} after); communication {seconds(run.traced.communication_s)}, "
                f"{seconds(run.traced.exposed_s)} of it exposed"
            )
    yield from unit_lines([run.before_s / run.measured_s - 1 for run in made.runs])
    yield interval_line(made)
    untold = [each.name for each in made.constants if not each.moved]
    if untold:
        yield f"the runs do not tell {', '.join(untold)}: kept as they are"
    for reason, count in made.left.items():
        yield f"not fitted: {count} ({reason})"
    if len(made.runs) == 1:
        yield "warning: one run cannot be left out of a fit, so nothing says how good these constants are"
    elif made.unseen is None and made.unseen_shapes is None:
        yield (
            f"warning: nothing says how good these constants are: the runs have {made.shapes} of the "
            f"{FEWEST_SHAPES} shapes that --leave-out shapes takes; leave out runs, or both"
        )
    elif not made.better:
        yield (
            "warning: runs that a fit did not see are not clearly better predicted than with the usual constants; "
            "these constants are not worth keeping"
        )
    if made.unseen is not None and made.unseen_shapes is None:
        few = f"the runs have {made.shapes} of the {FEWEST_SHAPES} shapes that this takes"
        why = few if made.shapes < FEWEST_SHAPES else "no shape was left out of a fit"
        yield f"nothing says how good these constants are for other models: {why}"
