"""pipebench rerun on another machine: what a colleague is told where a planner of the rows is not there."""

import re
import zipfile
from pathlib import Path

import pytest

from tests.attacks.stores import stranger_row, stranger_store
from tests.cli.command_line import CommandLine

ON_ONE_DEVICE = """
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    graph = problem.profile.graph
    names = tuple(graph.operators[position].name for position in graph.topological)
    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),))
"""
PROBLEM = ("--profile", "tiny-mmt-cpu", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")


def test_a_planner_in_a_file_is_in_the_pack_and_the_reason_says_where(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    monkeypatch.chdir(here)
    (here / "mine.py").write_text(ON_ONE_DEVICE)
    compared = pipebench(
        "compare", "--planners", "./mine.py", *PROBLEM, "--regime", "sync", "--no-wait", "--out", "rows"
    )
    assert compared.code == 0, compared.err
    assert pipebench("pack", "rows", "-o", str(there / "rows.zip")).code == 0
    monkeypatch.chdir(there)
    for words in ((), ("--trust",)):
        done = pipebench("rerun", "rows.zip", *words)
        assert done.code == 5
        said = " ".join(done.out.split())
        found = re.search(r"there is no file 'mine.py' here; its text is (\S+\.py) in rows.zip", said)
        assert found, said
        assert "save it as mine.py, then add --trust" in said
    with zipfile.ZipFile("rows.zip") as opened:
        Path("mine.py").write_bytes(opened.read(found[1]))
    assert pipebench("rerun", "rows.zip", "--trust").code == 0


def test_a_planner_of_a_plugin_that_is_not_installed_names_its_distribution(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    row = stranger_row(1, "theirs", "plugin", distribution="pipebench-theirs", version="0.3")
    done = pipebench("rerun", str(stranger_store(tmp_path / "store", row)))
    assert done.code == 5
    said = " ".join(done.out.split())
    assert "unknown planner 'theirs'" in said
    assert "the row is of pipebench-theirs 0.3, which offers none of that name here" in said
