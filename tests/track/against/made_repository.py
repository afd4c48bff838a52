"""A repository of one planner, as a stranger would have it."""

import subprocess
from pathlib import Path

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "mine"
version = "1.0"
[project.entry-points.pipebench]
mine = "mine.plugin"
[tool.hatch.build.targets.wheel]
packages = ["mine"]
"""
PLUGIN = """\
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1


@hookimpl
def pipebench_planners():
    return [
        Planner(
            name="mine",
            summary="all on one device",
            load="mine.planner:plan",
            capabilities=Capabilities(regimes=("sync",)),
            default_scheduler={"sync": "1f1b"},
        )
    ]
"""
PLANNER = """\
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult

STEPS = 100


def plan(problem, context):
    operators = tuple(operator.name for operator in problem.profile.graph.operators)
    for _ in range(STEPS):
        sum(i * i for i in range(1000))
    context.count("steps", 1)
    size = problem.profile.costs[0].micro_batches[0]
    return PlanResult(plan=Plan(stages=(Stage(operators=operators, devices=(0,), micro_batch=size),)))
"""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path) -> Path:
    """One commit: the planner as it was."""
    (folder / "mine").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "plugin.py").write_text(PLUGIN)
    (folder / "mine" / "planner.py").write_text(PLANNER)
    (folder / ".gitignore").write_text("*.egg-info/\nbuild/\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder
