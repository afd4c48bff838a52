"""pipebench compare without planners: those of papers, unless something else is named."""

import json
from pathlib import Path

import pytest

from pipebench import api
from pipebench.cli.commands.planning import compare
from pipebench.domain.errors import PipebenchError
from tests.cli.command_line import CommandLine, Done

SMALL = ("--profile", "resnet50", "--devices", "2", "--mini-batch", "8", "--regime", "sync", "--json")
SUITE = """
name = "own"
summary = "names its planners"
planners = ["uniform"]
regimes = ["sync"]

[[workloads]]
profile = "resnet50"
devices = 2
mini_batch = 8
"""
SAID = "no planner was named: comparing those of papers (--planners data-parallel,uniform)"


@pytest.fixture(autouse=True)
def quick_planners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planners without a search in place of those of papers."""
    monkeypatch.setattr(compare, "COMPARED_PLANNERS", ("data-parallel", "uniform"))


def planners(done: Done) -> list[str]:
    """Who stands in the rows."""
    return [row["planner"] for row in json.loads(done.out)["rows"]]


def test_those_of_papers_run_and_one_line_says_so(pipebench: CommandLine) -> None:
    done = pipebench("compare", *SMALL)
    assert done.code == 0
    assert planners(done) == ["data-parallel", "uniform"]
    assert done.err.count(SAID) == 1


def test_planners_that_are_named_win(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "uniform", *SMALL)
    assert planners(done) == ["uniform"]
    assert "no planner was named" not in done.err


def test_planners_of_a_suite_win(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(SUITE)
    done = pipebench("compare", "--suite", str(file), "--json")
    assert planners(done) == ["uniform"]
    assert "no planner was named" not in done.err
    file.write_text(SUITE.replace('planners = ["uniform"]\n', ""))
    assert planners(pipebench("compare", "--suite", str(file), "--json")) == ["data-parallel", "uniform"]


def test_a_plan_alone_is_scored_alone(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    pipebench("plan", "uniform", "--profile", "resnet50", "-n", "2", "--mini-batch", "8", "-o", str(file))
    done = pipebench("compare", "--plans", str(file), *SMALL)
    assert len(planners(done)) == 1
    assert "no planner was named" not in done.err


def test_the_api_still_asks_for_planners() -> None:
    with pytest.raises(PipebenchError, match="no planner was named"):
        api.compare(profiles="resnet50", devices=2)
