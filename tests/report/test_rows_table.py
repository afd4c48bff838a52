"""Rows as Markdown, CSV and LaTeX."""

import csv
import re
from io import StringIO

from pipebench.domain.artefact import Curve, Figure, Panel
from pipebench.domain.row import Row
from pipebench.report.rows import legend, rows_csv, rows_markdown
from pipebench.report.rows_latex import rows_latex
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


def latex_cells(text: str) -> list[list[str]]:
    """The lines of a tabular behind its head, cell by cell."""
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r"\\")]
    return [re.split(r"(?<!\\) & ", line) for line in lines[1:]]


def test_latex_has_a_block_for_each_problem_and_figures_that_align() -> None:
    small = row("a", throughput=8.25, memory_bytes=1_350_000_000, search_cpu_s=0.0123, gap=0.2187)
    large = row("b", throughput=312.5, memory_bytes=14_500_000_000, search_cpu_s=1.5, gap=None)
    text = rows_latex([small, large, row("c", mini_batch=small.mini_batch * 2)])
    assert r"samples/s & gap (\%) & fit & memory (GB) & bubble (\%) & search (ms) & status" in text
    first, one, other, second, _ = latex_cells(text)
    assert [len(each) for each in (first, one, other, second)] == [1, 11, 11, 1]
    assert first[0].startswith(r"\multicolumn{11}{l}{")
    assert one[4:6] + one[7:8] + one[9:10] == ["8.25", "21.9", "1.35", "12.3"]
    assert other[4:6] + other[7:8] + other[9:10] == ["312.50", "--", "14.50", "1500.0"]


def test_marks_of_names_are_explained_below_and_long_models_stand_in_a_comment() -> None:
    model = f"llm[{','.join(f'option{n}={n}' for n in range(9))}]"
    rows = [
        row("a", adapted=True, model=model, profile="qwen"),
        row("b", yardstick=True, model=model, profile="qwen"),
    ]
    text = rows_latex(rows)
    head, foot = text.split("\\bottomrule\n")
    assert foot.count(r"\multicolumn{11}{l}{\footnotesize ") == 2
    assert r"\textdagger{}" in foot
    assert "(adapted): planned for the other regime" in foot
    (heading,) = (line for line in head.splitlines() if line.startswith(r"\multicolumn"))
    assert heading == r"\multicolumn{11}{l}{qwen on 8 x summit, mini-batch 128} \\"
    assert f"% qwen is {model.replace(',', ', ')}" in head.splitlines()
    assert (
        rows_markdown(rows).splitlines()[4:] == ["", *(line for line in legend(rows) for line in (line, ""))][:4]
    )
    assert "footnotesize" not in rows_latex([row("a")])


def test_a_row_without_a_scheduler_has_a_dash_for_it() -> None:
    assert latex_cells(rows_latex([row("a", scheduler="", status="infeasible")]))[1][1] == "--"


def test_latex_runs_nothing_of_others() -> None:
    text = rows_latex([row(r"\input{/x}&$_#%~^<*[1]|"), row("[2]\n*")])
    _, one, other = latex_cells(text)
    assert one[0] == (
        r"\textbackslash{}input\{/x\}\&\$\_\#\%\textasciitilde{}\textasciicircum{}\textless{}{*}{[}1]\textbar{}"
    )
    assert re.fullmatch(r"\{\[\}2\].*\{\*\}", other[0])


def test_the_series_of_an_artefact_run_nothing_either() -> None:
    curve = Curve(label="=cmd()", points=((-1.0, 2.0),))
    panel = Panel(title="@SUM(1)", x_label="x", y_label="y", curves=(curve,))
    (_, line) = csv.reader(StringIO(series_csv(Figure(title="t", panels=(panel,)))))
    assert line[:2] == ["'@SUM(1)", "'=cmd()"]
    assert line[3:] == ["-1", "2"]
