"""Options of planners and schedulers that name files of the user: they are read where the command is typed."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install

READING = """
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner, Scheduler

PIPEBENCH_API = 1

class Options(Value, frozen=True, kw_only=True):
    file: str = ""

@hookimpl
def pipebench_planners():
    return [
        Planner(
            name="reading", summary="reads a file", load="{module}:plan", options=Options, paths=("file",),
            calls=("1f1b",),
        )
    ]

@hookimpl
def pipebench_schedulers():
    made = {"summary": "reads a file", "load": "{module}:schedule", "options": Options, "paths": ("file",)}
    return [Scheduler(name="reading", calls=("1f1b",), **made)]

def read(context):
    if context.options.file:
        context.note(open(context.options.file).read())

def plan(problem, context):
    read(context)
    graph = problem.profile.graph
    names = tuple(graph.operators[position].name for position in graph.topological)
    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),))

def schedule(problem, plan, context):
    read(context)
    return context.schedule("1f1b", problem, plan)
"""
PROBLEM = (
    "--profile",
    "tiny-mmt-cpu",
    "--devices",
    "2",
    "--memory",
    "16GB",
    "--mini-batch",
    "8",
    "--regime",
    "sync",
)


@pytest.mark.parametrize(
    ("planner", "scheduler"),
    [
        ("reading[file=cuts.txt]", "1f1b"),
        ("reading", "reading[file=cuts.txt]"),
        ("reading[file=cuts.txt]", "reading"),
    ],
)
def test_a_file_is_read_where_the_command_is_typed(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planner: str, scheduler: str
) -> None:
    installed, typed = tmp_path / "installed", tmp_path / "typed"
    for folder in (installed, typed):
        folder.mkdir()
    monkeypatch.delitem(sys.modules, "reading_one", raising=False)
    monkeypatch.syspath_prepend(installed)
    install(installed, "reading-one", READING)
    (typed / "cuts.txt").write_text("three cuts")
    monkeypatch.chdir(typed)
    words = ("compare", "--planners", planner, "--schedulers", scheduler, *PROBLEM, "--no-wait", "--json")
    done = pipebench(*words)
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"]}
    assert rows[planner]["status"] == "ok", rows[planner]["reason"]
    if "[" in planner:
        assert "three cuts" in rows[planner]["notices"]
