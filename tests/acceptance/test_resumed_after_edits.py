"""A store after its code was edited: what is run again, and what is not. A user edits a copy of the suite."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANNERS = "data-parallel,layout,gpipe-hybrid,./mine.py"
MINE = """
from pipebench.algorithms.chains.stage_row import way
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    names = tuple(operator.name for operator in problem.profile.graph.operators)
    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),))
"""


class Copy:
    """A copy of the suite that may be edited, and comparisons with it into one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("pipebench", "plugins"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "profiles").symlink_to(ROOT / "profiles")
        (folder / "mine.py").write_text(MINE)
        path = os.pathsep.join(map(str, (folder, folder / "plugins")))
        # Keys read sources. Python runs the kernels, which numba would compile again after each edit.
        # Python keeps what it compiles here, also where it keeps nothing elsewhere: each module is compiled once.
        self.environment = {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": ""}

    def compare(self, *more: str) -> tuple[set[str], str]:
        """The planners that ran, and the line about the store."""
        arguments = ["--planners", PLANNERS, "--profile", "resnet50", "--devices", "2", "--memory", "16GB"]
        done = subprocess.run(
            [sys.executable, "-m", "pipebench", "compare", *arguments, "--mini-batch", "2", "--micro-batch", "1",
             "--regime", "sync",
             "--out", "store", "--json", *more],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed = json.loads(done.stdout)
        (line,) = re.findall(r"^(\d+ cached, (\d+) to run.*)$", done.stderr, re.MULTILINE)
        ran = {row["planner"] for row in printed["rows"] if row["key"] not in printed["cached"]}
        return ran, line[0]

    def edit(self, path: str, before: str, after: str) -> None:
        """Replace the first occurrence."""
        file = self.folder / path
        text = file.read_text()
        assert before in text, path
        file.write_text(text.replace(before, after, 1))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("suite"))


@pytest.mark.nightly
def test_edits_run_again_what_depends_on_them(copy: Copy) -> None:
    everything = {"data-parallel", "layout", "gpipe-hybrid", "./mine.py"}
    assert copy.compare("--jobs", "2")[0] == everything

    nothing, line = copy.compare()
    assert nothing == set()
    assert line == "4 cached, 0 to run (4 cached rows ran beside other work: --fresh times all again)"

    for file in (
        "pipebench/check/memory.py",
        "pipebench/algorithms/planning.py",
        "plugins/pipebench_baselines/layout.py",
    ):
        copy.edit(file, '"""', '"""Edited. ')
    copy.edit("pipebench/check/memory.py", "\ndef ", "\n# a comment\n\n\ndef ")
    (copy.folder / "pipebench/simulation/unused.py").write_text("UNUSED = 1\n")
    (copy.folder / "mine.py").write_text(f"# mine\n{MINE}")
    assert copy.compare()[0] == set()

    copy.edit("plugins/pipebench_baselines/layout.py", "MOST_MOVES = ", "MOST_MOVES = 1 + ")
    assert copy.compare()[0] == {"layout"}

    copy.edit(
        "plugins/pipebench_schedules/single_stage.py", "    del context\n", "    del context\n    edited = True\n"
    )
    assert copy.compare()[0] == everything  # each plan is tried under every scheduler

    kernel = "    return (a.id for"  # gpipe-hybrid uses the module, not this function
    copy.edit("pipebench/algorithms/chains/stage_row.py", kernel, f"    edited = True\n{kernel}")
    assert copy.compare()[0] == {"layout", "./mine.py"}

    copy.edit("pipebench/costs/version.py", "MODEL_VERSION = ", "MODEL_VERSION = 1 + ")
    assert copy.compare()[0] == everything
