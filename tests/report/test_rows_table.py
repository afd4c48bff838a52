"""Rows as Markdown and CSV."""

import csv
from io import StringIO

from pipebench.domain.artefact import Curve, Figure, Panel
from pipebench.domain.row import Row
from pipebench.report.rows import rows_csv, rows_markdown
from pipebench.report.text.findings import series_csv
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
    lines = rows_markdown([row("a|b<i>"), row("![c](https://example.org)")]).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| a\\|b&lt;i> | 1f1b | sync |")
    assert lines[3].startswith("| !\\[c](https://example.org) | ")
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_the_series_of_an_artefact_run_nothing_either() -> None:
    curve = Curve(label="=cmd()", points=((-1.0, 2.0),))
    panel = Panel(title="@SUM(1)", x_label="x", y_label="y", curves=(curve,))
    (_, line) = csv.reader(StringIO(series_csv(Figure(title="t", panels=(panel,)))))
    assert line[:2] == ["'@SUM(1)", "'=cmd()"]
    assert line[3:] == ["-1", "2"]
