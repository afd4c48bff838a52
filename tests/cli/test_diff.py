"""pipebench diff, as a user runs it."""

import json
from pathlib import Path

import pytest

from pipebench.documents.document import PlannedProblem, Rows
from pipebench.formats.documents import write_document
from tests.bench.standings.made_rows import row
from tests.builders import chain_problem, cluster, stages_plan
from tests.cli.command_line import CommandLine


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Two plans for one problem, two sets of rows."""
    problem = chain_problem([10, 20, 30], [20, 40, 60], cluster(2), mode="sync")
    made = {}
    for name, groups in (("a", [[0, 1], [2]]), ("b", [[0], [1, 2]])):
        path = tmp_path / f"{name}.json"
        write_document(path, "plan", PlannedProblem(problem=problem, plan=stages_plan(groups)))
        made[name] = str(path)
    for name, value in (("one", 1.0), ("two", 2.0)):
        path = tmp_path / f"{name}.json"
        write_document(path, "rows", Rows(rows=(row("madpipe", "p", value),)))
        made[name] = str(path)
    return made


def test_two_plans(pipebench: CommandLine, files: dict[str, str]) -> None:
    done = pipebench("diff", files["a"], files["b"])
    assert done.code == 0, done.err
    assert "moved: 0 -> 1, 1 operator" in done.out
    assert pipebench("diff", files["a"], files["b"], "--exit-code").code == 1
    assert pipebench("diff", files["a"], files["a"], "--exit-code").code == 0


def test_two_sets_of_results(pipebench: CommandLine, files: dict[str, str]) -> None:
    done = pipebench("diff", files["one"], files["two"], "--exit-code")
    assert done.code == 1, done.err
    assert "1 worse" in done.out
    assert pipebench("diff", files["two"], files["two"], "--exit-code").code == 0


def test_json(pipebench: CommandLine, files: dict[str, str]) -> None:
    plans = json.loads(pipebench("diff", files["a"], files["b"], "--json").out)
    assert (plans["compared"], plans["same"]) == ("plans", False)
    (move,) = plans["structure"]["moves"]
    assert (move["operators"], move["source"], move["target"]) == (["op1"], 0, 1)
    results = json.loads(pipebench("diff", files["one"], files["one"], "--json").out)
    assert (results["compared"], results["same"]) == ("results", True)
    assert results["rows"][0]["outcome"] == "same"


def test_a_plan_and_results_do_not_compare(pipebench: CommandLine, files: dict[str, str]) -> None:
    done = pipebench("diff", files["one"], files["a"])
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "two plans or two sets of results" in done.err
