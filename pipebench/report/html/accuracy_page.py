"""The page of predicted against measured: the scatter on top, then every table, every run in one of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipebench.bench.accuracy.summary import AXES, Accuracy, AccuracyRow, Axis, device_of
from pipebench.report.chart.scatter import MOST_SERIES, ScatterPoint, scatter_svg
from pipebench.report.html.template import page, picture
from pipebench.report.text.measurements.accuracy import (
    ERROR_COLUMNS,
    MEANING,
    TITLES,
    error_cells,
    head_line,
    named_runs,
    remark_lines,
    row_cells,
    unfit_line,
)
from pipebench.report.units import percent


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as texts. names: how many columns from the left are words. folded: behind its title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    folded: bool = False


def accuracy_page(made: Accuracy, title: str, command: str) -> str:
    """The whole page. command: that makes it again."""
    return page(
        "accuracy.html",
        title=title,
        head=head_line(made),
        meaning=MEANING,
        chart=_chart(made),
        remarks=[*remark_lines(made), *filter(None, [unfit_line(made)])],
        tables=[table for table in _tables(made) if table.rows],
        command=command,
    )


def _chart(made: Accuracy) -> Markup:
    predicted = [row for row in made.rows if row.simulated_s]
    if not predicted:
        return Markup("")
    names = [row.group for row in predicted]
    if len(set(names)) > MOST_SERIES:
        names = [device_of(name) for name in names]
    series = list(dict.fromkeys(names))
    points = [
        ScatterPoint(row.id, series.index(name), row.measured_s, row.simulated_s, row.low_s, row.high_s)
        for row, name in zip(predicted, names, strict=True)
        if row.simulated_s
    ]
    return picture(scatter_svg(points, series, "Seconds of one iteration"))


def _tables(made: Accuracy) -> list[_Table]:
    return [
        *(_groups(made, axis) for axis in AXES),
        _Table(
            "Layouts of one model, GPU count and mini-batch",
            ("layouts of", "runs", "tau-b", "regret"),
            [
                (each.name, str(each.count), "-" if each.tau is None else f"{each.tau:.2f}", percent(each.regret))
                for each in made.layouts
            ],
            folded=True,
        ),
        _Table(
            "What the sources do not say",
            ("not said", "taken as", "", *ERROR_COLUMNS[:3]),
            [
                (
                    each.field,
                    each.value,
                    "" if each.usual else "alternative",
                    str(each.count),
                    *error_cells(each.errors)[1:3],
                )
                for each in made.variants
            ],
            names=3,
        ),
        _Table(
            "Not predicted",
            ("because of", "which", "runs"),
            [
                (reason, named_runs([row for row in made.rows if row.reason == reason]), str(count))
                for reason, count in made.reasons.items()
            ],
            names=2,
        ),
        _Table(
            "All runs",
            ("run", "group", "measured", "predicted", "error", "peak", "measured peak", "memory", "why not"),
            [(row.id, row.group, *row_cells(row), row.fit or "", _why_not(row)) for row in made.rows],
            names=2,
            folded=True,
        ),
    ]


def _why_not(row: AccuracyRow) -> str:
    return f"{row.reason} ({row.detail})" if row.detail else row.reason


def _groups(made: Accuracy, axis: Axis) -> _Table:
    rows = [(group.name, *error_cells(group.errors)) for group in made.groups if group.axis == axis]
    return _Table(f"By {TITLES[axis]}", (TITLES[axis], *ERROR_COLUMNS), rows, folded=axis != "model")
