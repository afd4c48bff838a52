"""`--coarsen` as a user runs it: planners see blocks, rows and plans are of operators."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipebench.api import compare
from pipebench.formats.documents import read_document
from tests.cli.command_line import CommandLine

MMT = ("--models", "mmt", "--cluster", "summit", "--devices", "8", "--mini-batch", "128", "--regime", "sync")


def rows_of(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def test_piper_plans_mmt_in_blocks(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "piper", *MMT, "--coarsen", "20", "--json")
    assert done.code == 0, done.err
    (row,) = rows_of(done.out)
    assert (row["status"], row["verdict"], row["coarsen"]) == ("ok", "valid", 20)
    assert "blocks of 97 operators" in row["notices"][0]
    done = pipebench("compare", "--planners", "piper", *MMT, "--json")
    (row,) = rows_of(done.out)
    assert row["status"] == "unsupported"
    assert "--coarsen N" in row["reason"]


def test_who_splits_operators_refuses_blocks_by_name(pipebench: CommandLine) -> None:
    done = pipebench(
        "compare", "--planners", "pase,mcmc,expert,tensor-parallel", *MMT, "--coarsen", "32", "--json"
    )
    for row in rows_of(done.out):
        assert row["status"] == "unsupported"
        assert row["reason"].startswith(f"{row['planner']} splits operators; a block cannot be split")


def test_a_plan_file_holds_operators(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = pipebench("plan", "pipedream", *MMT, "--coarsen", "16", "-o", str(file))
    assert done.code == 0, done.err
    planned = read_document(file, "plan")
    names = {operator.name for operator in planned.problem.profile.graph.operators}
    assert len(names) == 97
    assert {name for stage in planned.plan.stages for name in stage.operators} == names
    done = pipebench("compare", "--plans", str(file), *MMT, "--coarsen", "16", "--json")
    (row,) = rows_of(done.out)
    assert (row["status"], row["coarsen"]) == ("ok", 0)  # it comes in operators: there is nothing to coarsen


@pytest.mark.nightly
def test_a_store_keeps_both_apart_and_runs_them_again(pipebench: CommandLine, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    asked = ("compare", "--planners", "pipedream", *MMT, "--out", store, "--json")
    assert rows_of(pipebench(*asked).out)[0]["coarsen"] == 0
    made = pipebench(*asked, "--coarsen", "16").out
    assert rows_of(made)[0]["coarsen"] == 16
    again = json.loads(pipebench(*asked, "--coarsen", "16").out)
    assert again["cached"] == [again["rows"][0]["key"]]
    done = pipebench("rerun", store, "--json")
    assert done.code == 0, done.err + done.out
    assert [each["mark"] for each in json.loads(done.out)["rows"]] == ["same"] * 4  # of each its yardstick, too
    table = pipebench("show", store).out
    assert "pipedream (16 blocks)" in table


def test_a_suite_may_say_it(pipebench: CommandLine, tmp_path: Path) -> None:
    suite = tmp_path / "blocks.toml"
    suite.write_text(
        'name = "blocks"\nsummary = "one"\nplanners = ["pipedream"]\nregimes = ["sync"]\ncoarsen = 16\n'
        '[[workloads]]\nmodel = "mmt"\ncluster = "summit"\ndevices = 8\nmini_batch = 128\n'
    )
    (row,) = rows_of(pipebench("compare", "--suite", str(suite), "--json").out)
    assert row["coarsen"] == 16
    (row,) = rows_of(pipebench("compare", "--suite", str(suite), "--coarsen", "8", "--json").out)
    assert row["coarsen"] == 8


def test_from_python() -> None:
    (row,) = compare(
        "pipedream", regime="sync", models=["mmt"], cluster="summit", devices=8, mini_batch=128, coarsen=16
    )
    assert (row.status, row.coarsen, row.planned_by) == ("ok", 16, "pipedream (16 blocks)")
