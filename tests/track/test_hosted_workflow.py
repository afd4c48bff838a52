"""The workflow as it stands in a repository, executed block by block in order, night after night."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.system.kernel_folder import VARIABLE, kernel_folder
from pipebench.track.nights.history import open_history
from tests.track.against import made_repository
from tests.track.against.made_repository import git

pytest.importorskip("yaml")

from tests.track.hosted_runner import HostedRunner, holds

BENCHMARK = """\
import pytest
from mine.planner import STEPS


def test_kernel(benchmark):
    benchmark.extra_info["counters"] = {"steps": STEPS}
    benchmark(lambda: sum(i * i for i in range(1000 * STEPS)))


@pytest.mark.skipif(STEPS < 10, reason="only the worse revision has it")
def test_broken(benchmark):
    benchmark(lambda: 1 // (STEPS - STEPS))
"""
SUITE = """\
name = "tiny"
summary = "one model on one device"
planners = ["mine"]
regimes = ["sync"]

[limits]
repeat = 3

[[workloads]]
name = "tiny"
profile = "mmt"
devices = 1
mini_batch = 4
"""


def environment(folder: Path) -> dict[str, str]:
    """Of a hosted machine, without a network: pip takes what is there already, and so do kernels."""
    home, kernels = folder / "home", kernel_folder()
    home.mkdir()
    kept = ("LANG", "TMPDIR")
    known = {name: os.environ[name] for name in kept if name in os.environ}
    known |= {VARIABLE: str(kernels)} if kernels is not None else {}
    return known | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads a no to isolation in 0, too
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin author's repository with one planner and one benchmark; `main` is pushed."""
    folder, origin = made_repository.repository(tmp_path / "mine"), tmp_path / "origin.git"
    (folder / "mine" / "planner.py").write_text(made_repository.PLANNER.replace("STEPS = 100", "STEPS = 1"))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "test_speed.py").write_text(BENCHMARK)
    (folder / "tiny.toml").write_text(SUITE)
    monkeypatch.chdir(folder)
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    git(folder, "remote", "add", "origin", str(origin))
    return folder


def initialised(folder: Path, *words: str) -> str:
    """The workflow that the command writes, committed and pushed."""
    assert run(["track", "init", *words]) == 0
    push(folder, "nightly")
    return (folder / ".github" / "workflows" / "nightly.yml").read_text()


def push(folder: Path, message: str) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", message)
    git(folder, "push", "-q", "origin", "HEAD:main")


def nights_of(folder: Path, target: Path) -> Path:
    """The history as it stands on its branch."""
    target.mkdir()
    git(folder, "fetch", "-q", "origin", "pipebench-history")
    subprocess.run(
        f"git -C {shlex.quote(str(folder))} archive FETCH_HEAD | tar -x -C {shlex.quote(str(target))}",
        shell=True,
        check=True,
    )
    return target


@pytest.mark.nightly
def test_two_nights_as_github_would_run_them(repository: Path, tmp_path: Path) -> None:
    """The second revision does more work, and one of its benchmarks fails: the night is kept, and fails."""
    benchmarks = "benchmarks --benchmark-max-time 0.1"
    workflow = initialised(repository, "--suite", "tiny.toml", "--budget", "5s", "--benchmarks", benchmarks)
    assert "highspy==" in (repository / "constraints.txt").read_text()
    runner = HostedRunner(tmp_path / "origin.git", tmp_path / "machines", environment(tmp_path))
    first = runner.run(workflow)
    assert not first["measure"].failed, first["measure"].said
    assert not first["keep"].failed, first["keep"].said
    assert "Nothing became worse" in first["measure"].summary

    planner = repository / "mine" / "planner.py"
    planner.write_text(planner.read_text().replace("STEPS = 1", "STEPS = 20").replace('"steps", 1', '"steps", 2'))
    push(repository, "slower")
    second = runner.run(workflow)
    outcomes = {step.name: step.outcome for step in second["measure"].steps}
    assert outcomes["Run the benchmarks"] == "failure"
    assert outcomes["Record the night"] == "success", second["measure"].said
    assert outcomes["Check"] == "failure"
    assert second["measure"].failed
    assert not second["keep"].failed, second["keep"].said
    assert "Worse" in second["measure"].summary
    assert "test\\_speed.py::test\\_kernel" in second["measure"].summary

    kept = nights_of(repository, tmp_path / "kept")
    nights = [each.night for each in open_history(kept).nights]
    assert [len(night.measured) for night in nights] == [1, 1]
    assert [len(night.benchmarks) for night in nights] == [1, 1]
    ratios = [night.benchmarks[0].paired for night in nights]
    assert [len(each.rounds["interpreter"]) for each in ratios if each] == [3, 3]
    assert nights[0].revision != nights[1].revision
    page = (kept / "index.html").read_text()
    assert f"between {nights[0].revision} and {nights[1].revision}" in page
    report = runner.artifacts / "report"
    assert {file.name for file in report.rglob("*.*")} == {
        "report.html",
        "report.md",
        "1.json",
        "2.json",
        "3.json",
    }


def test_a_record_that_fails_keeps_its_night(repository: Path, tmp_path: Path) -> None:
    """A budget of nothing measures nothing, which is a failure; that night is on the branch all the same."""
    workflow = initialised(repository, "--suite", "tiny.toml", "--budget", "0.0000001s")
    runner = HostedRunner(tmp_path / "origin.git", tmp_path / "machines", environment(tmp_path))
    jobs = runner.run(workflow)
    outcomes = {step.name: step.outcome for step in jobs["measure"].steps}
    assert (outcomes["Record the night"], outcomes["Check"]) == ("failure", "failure"), jobs["measure"].said
    assert jobs["measure"].failed
    assert not jobs["keep"].failed, jobs["keep"].said
    night = open_history(nights_of(repository, tmp_path / "kept")).nights[0].night
    assert (night.measured, "the budget ended before these ran" in night.notices[0]) == ((), True)


def test_an_installation_that_fails_records_nothing(repository: Path, tmp_path: Path) -> None:
    gone = "python -m pip install -c constraints.txt gone"
    workflow = initialised(repository, "--planners", "uniform", "--install", gone)
    runner = HostedRunner(tmp_path / "origin.git", tmp_path / "machines", environment(tmp_path))
    jobs = runner.run(workflow)
    outcomes = {step.name: step.outcome for step in jobs["measure"].steps}
    assert outcomes["Install"] == "failure"
    assert {outcomes[name] for name in ("Fetch the history", "Record the night", "Check")} == {"skipped"}
    assert (jobs["measure"].failed, jobs["keep"].skipped) == (True, True)


@pytest.mark.parametrize(
    ("condition", "values", "failed", "answer"),
    [
        ("success()", {}, True, False),
        ("always()", {}, True, True),
        ("steps.a.outputs.b == 'true'", {"steps.a.outputs.b": "true"}, True, False),
        ("${{ !cancelled() && steps.a.outputs.b == 'true' }}", {"steps.a.outputs.b": "true"}, True, True),
        ("${{ !cancelled() && steps.a.outcome == 'success' }}", {}, False, False),
    ],
)
def test_conditions(condition: str, values: Mapping[str, str], failed: bool, answer: bool) -> None:
    assert holds(condition, values, failed) is answer
