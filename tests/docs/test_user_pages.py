"""What pages for users say of a planner in a file, of a cluster in a file, and of what ships."""

import json
import re
from pathlib import Path

import pytest

from pipebench.domain.errors import ExitCode
from tests.cli.command_line import CommandLine
from tests.docs.pages import DOCS, blocks


def file_of(page: str, name: str) -> str:
    (text,) = [block.text for block in blocks(DOCS / page) if block.file == name]
    return text


def test_a_planner_in_a_file_stands_in_the_table(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(file_of("how-to/compare.md", "mine.py"))
    small = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
    done = pipebench("compare", "--planners", "./mine.py,uniform", *small)
    assert done.code == 0, done.out
    (line,) = [line for line in done.out.splitlines() if line.startswith("./mine.py ")]
    assert len(re.findall(r" \d+\.\d\b", line)) >= 4, line  # samples/s and % of the bound, in both regimes


@pytest.mark.parametrize("page", ["how-to/your-model-and-cluster.md", "tutorial/first-hour.md"])
def test_a_cluster_in_a_file_loads(pipebench: CommandLine, tmp_path: Path, page: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(file_of(page, "mine.toml"))
    small = ("--models", "mmt[branches=2,layers=2]", "--cluster", str(file), "--devices", "4", "--mini-batch", "8")
    done = pipebench("compare", "--planners", "uniform", *small)
    assert done.code == 0, done.err
    assert "on 4 x A100" in done.out


def test_what_is_said_to_ship_ships(pipebench: CommandLine) -> None:
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", (DOCS / "reference" / "what-ships.md").read_text(), re.MULTILINE)
    shipped = {slot: set(re.findall(r"`([^`]+)`", names)) for slot, names in rows if slot != "slot"}
    assert {"planners", "schedulers", "models", "profiles", "clusters", "suites", "formats"} <= set(shipped)
    for slot, names in shipped.items():
        listed = {entry["name"] for entry in json.loads(pipebench("list", slot, "--json").out)}
        assert listed <= names, slot


def test_every_exit_code_is_told() -> None:
    page = (DOCS / "reference" / "exit-codes.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == set(map(int, ExitCode))


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()
