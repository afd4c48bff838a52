"""The notices of rows as numbered notes."""

from pipebench.report.text.comparisons.notes import Notes
from tests.report.rows import row

ONE_SIZE = "micro-batch size {} was not profiled (only 8): times are taken in proportion"


def test_of_notices_that_differ_in_figures_only_those_that_differ_are_left_out() -> None:
    rows = [row("madpipe", notices=(ONE_SIZE.format(1),)), row("graphpipe", notices=(ONE_SIZE.format("2, 4"),))]
    sizes = [row("uniform", notices=(ONE_SIZE.format(size),)) for size in (1, 2)]
    assert Notes(sizes).lines() == [f"1  uniform: {ONE_SIZE.format('…')}"]
    assert Notes(rows[:1]).lines() == [f"1  madpipe: {ONE_SIZE.format(1)}"]
    assert len(Notes(rows).lines()) == 2
