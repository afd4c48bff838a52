"""Rows as Markdown and CSV."""

import csv
from io import StringIO

from pipebench.domain.row import Row
from pipebench.report.rows import rows_csv, rows_markdown
from tests.report.rows import row


def test_csv_has_every_field_and_runs_nothing() -> None:
    text = rows_csv([row("=HYPERLINK(1)", search_samples=((1.0, 2.0),), reason='a, "b"'), row("b")])
    head, first, second = csv.reader(StringIO(text))
    assert tuple(head) == Row.__struct_fields__
    values = dict(zip(head, first, strict=True))
    assert values["planner"] == "'=HYPERLINK(1)"
    assert values["search_samples"] == "[[1.0, 2.0]]"
    assert values["reason"] == 'a, "b"'
    assert values["measured_s"] == ""
    assert dict(zip(head, second, strict=True))["planner"] == "b"


def test_markdown_has_one_line_a_row_and_no_markup_of_others() -> None:
    lines = rows_markdown([row("a|b<i>"), row("c")]).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| a\\|b&lt;i> | 1f1b | sync |")
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
