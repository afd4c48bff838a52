"""The page on columns has every column, status and mark; that on planners every planner with its paper."""

import json
import re
from typing import get_args

import pytest

from pipebench.documents.glossary import subjects
from pipebench.domain.row import Status
from pipebench.report.rows import COLUMNS
from pipebench.report.text.comparisons.standings import COLUMNS as STANDING_COLUMNS
from pipebench.report.text.comparisons.standings import DUEL_COLUMNS
from tests.cli.command_line import CommandLine
from tests.docs.pages import DOCS

PAGE = (DOCS / "reference" / "columns.md").read_text()
PLANNERS = (DOCS / "reference" / "planners.md").read_text()
COST_MODEL = (DOCS / "explanation" / "cost-model.md").read_text()


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def test_every_column_of_a_printed_block_is_explained(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a terminal wide enough for all of them: every word of the two lines of titles."""
    monkeypatch.setenv("COLUMNS", "250")
    small = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
    printed = pipebench("compare", "--planners", "contiguous-exact,pipedream", *small).out.splitlines()
    row = next(number for number, line in enumerate(printed) if line.startswith("planner "))
    titles = first_cells(section(PAGE, "A block of `compare`"))
    units_and_regimes = {"sync", "async", "GB", "of", "16.0"}
    assert {"samples/s", "bubble", "claimed"} <= set(printed[row - 1].split()) | set(printed[row].split())
    assert {*printed[row - 1].split(), *printed[row].split()} - units_and_regimes <= set(" ".join(titles).split())


def test_every_column_of_the_other_tables_is_explained() -> None:
    assert first_cells(section(PAGE, "The table of all rows")) == [title for title, _ in COLUMNS]
    assert first_cells(section(PAGE, "Standings")) == [*STANDING_COLUMNS, *DUEL_COLUMNS]


def test_every_status_and_mark_is_explained() -> None:
    assert first_cells(section(PAGE, "Statuses")) == [*get_args(Status)]
    marks = section(PAGE, "Marks")
    assert [mark for mark in ("*", "†", "tight", "a | b", "n/a") if f"`{mark}`" not in marks] == []


def test_links_into_the_cost_model_lead_to_headings() -> None:
    headings = re.findall(r"^## (.+)$", COST_MODEL, re.MULTILINE)
    sections = {term.section for subject in subjects() for term in subject.terms if term.section}
    assert len(sections) > 5
    assert sections <= set(headings)
    anchors = {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"cost-model\.md#([\w-]+)", page.read_text()):
            assert target in anchors, f"{page.name}: {target}"


def test_every_planner_that_ships_is_in_the_table_with_its_paper(pipebench: CommandLine) -> None:
    listed = json.loads(pipebench("list", "planners", "--json").out)
    shipped = {each["name"]: each["paper"] for each in listed if each["provider"].startswith("pipebench ")}
    rows = dict(re.findall(r"^\| \[`([\w-]+)`\]\([^)]*\) \| (.+?) \|", PLANNERS, re.MULTILINE))
    assert rows.keys() == shipped.keys()
    assert {name for name, paper in rows.items() if paper == "-"} == {"data-parallel", "uniform", "local-search"}
    for name, paper in rows.items():
        assert paper.startswith(f"[{shipped[name]}](https://") or paper == "-", f"{name}: no link: {paper}"
