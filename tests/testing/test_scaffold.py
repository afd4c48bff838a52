"""A generated package works as it is: installed, its own tests pass, its component stands beside the others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.testing.scaffold import SLOTS, new_package, write_package
from tests.cli.command_line import CommandLine
from tests.nightly import mostly_at_night
from tests.testing.generated import install_generated

NAMES = {slot: f"my-{slot}" for slot in SLOTS}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("new")
    for slot, name in NAMES.items():
        write_package(new_package(name, slot, folder))
    return {slot: folder / name for slot, name in NAMES.items()}


@pytest.fixture(scope="module")
def paths(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What makes them importable, with their metadata."""
    found = (install_generated(package, tmp_path_factory.mktemp("installed")) for package in packages.values())
    return [path for each in found for path in each]


@pytest.fixture(scope="module")
def environment(paths: list[str]) -> dict[str, str]:
    """Of a process in which all are installed."""
    path = os.pathsep.join([*paths, *filter(None, sys.path)])
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def run(environment: dict[str, str], folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("slot", mostly_at_night(SLOTS, ("executor", "format")))
def test_its_own_tests_pass(packages: dict[str, Path], environment: dict[str, str], slot: str) -> None:
    """Those of a new planner are run by `nox -s plugin` as well, with every change."""
    package = packages[slot]
    done = run(environment, package.parent, "pytest", package.name, "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout[-3000:]
    totals = done.stdout.partition("pipebench conformance: ")[2]
    assert int(totals.split()[0]) >= 7
    assert totals.splitlines()[0].endswith(" 0 failed")


@pytest.fixture
def installed(
    paths: list[str], pipebench: CommandLine, packages: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command in this process, where all are installed."""
    for path in paths:
        monkeypatch.syspath_prepend(path)
    monkeypatch.chdir(packages["planner"].parent)
    return pipebench


def test_the_planner_is_compared_with_those_that_ship(installed: CommandLine) -> None:
    small = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8", "--json")
    done = installed("compare", "--planners", "my-planner,madpipe", *small)
    assert done.code == 0, done.err
    rows = {(row["planner"], row["regime"]): row for row in json.loads(done.out)["rows"]}
    assert {key: row["status"] for key, row in rows.items()} == {
        (name, regime): "ok" for name in ("my-planner", "madpipe") for regime in ("sync", "async")
    }
    assert rows["my-planner", "sync"]["distribution"] == "pipebench-my-planner"


def test_the_model_is_profiled_and_compared(installed: CommandLine) -> None:
    small = ("--models", "my-model[layers=4]", "--devices", "2", "--mini-batch", "8", "--regime", "sync", "--json")
    done = installed("compare", "--planners", "uniform", *small)
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["rows"]
    assert (row["status"], row["model"]) == ("ok", "my-model[layers=4]")


def test_the_figure_is_run_and_judged(
    packages: dict[str, Path], environment: dict[str, str], tmp_path: Path
) -> None:
    arguments = ("reproduce", "my-artefact/fig1", "--out", str(tmp_path / "figures"))
    done = run(environment, packages["artefact"], "pipebench", *arguments)
    assert done.returncode == 0, done.stderr
    assert "holds: Balanced cuts have at least the throughput of equal ones" in done.stdout


def test_types_are_strict(packages: dict[str, Path], environment: dict[str, str], tmp_path: Path) -> None:
    sources = [str(package / "src") for package in packages.values()]
    done = run(environment, tmp_path, "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *sources)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("slot", SLOTS)
def test_style_is_clean(packages: dict[str, Path], slot: str) -> None:
    for command in (["check", "--extend-select", "I", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = run(dict(os.environ), packages[slot], "ruff", *command, ".")
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("slot", SLOTS)
def test_no_word_of_a_template_is_left(packages: dict[str, Path], slot: str) -> None:
    files = [path for path in packages[slot].rglob("*") if path.is_file()]
    assert {"pyproject.toml", "README.md", "ci.yml", "plugin.py", "py.typed", "test_conformance.py"} <= {
        path.name for path in files
    }
    for path in files:
        assert "@@" not in str(path) + path.read_text()


@pytest.mark.parametrize(
    ("name", "slot", "told"),
    [
        ("Mine", "planner", "such as 'mine'"),
        ("my planner!", "planner", "such as 'my-planner'"),
        ("9lives", "planner", "such as 'lives'"),
        ("", "planner", "such as 'mine'"),
        ("../mine", "planner", "such as 'mine'"),
        ("a" * 41, "planner", "at most 40"),
        ("json", "format", "files that end in .json are read as"),
        ("csv", "format", "such as 'my-csv'"),
        ("pipebench", "planner", "'pipebench' is the suite itself (such as 'my-pipebench')"),
        ("best", "planner", "such as 'my-best'"),
        ("madpipe", "planner", "there is a planner 'madpipe' already (such as 'my-madpipe')"),
        ("baselines", "planner", "'pipebench_baselines' is installed already"),
        ("mine", "planer", "unknown slot 'planer' (did you mean 'planner'?"),
        ("mine", "suite", "unknown slot 'suite'"),
    ],
)
def test_a_wrong_name_is_one_line_with_one_that_would_do(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, slot: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = pipebench("plugin", "new", name, "--slot", slot)
    assert done.code == 2
    assert done.err.count("\n") == 1
    if name != "baselines":
        assert told in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("wave", "scheduler"),
        pytest.param("class", "planner", marks=pytest.mark.nightly),
        pytest.param("json", "profiler", marks=pytest.mark.nightly),
    ],
)
def test_words_of_python_are_usable_names(tmp_path: Path, name: str, slot: str) -> None:
    package = new_package(name, slot, tmp_path)
    write_package(package)
    assert package.module == f"pipebench_{name}"
    paths = [*install_generated(package.folder, tmp_path / "installed"), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    # found and loaded by its names; the rest is the same whatever they are
    done = run(environment, tmp_path, "pytest", name, "-p", "no:cacheprovider", "-k", "metadata or determinism")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout


def test_nothing_is_overwritten(pipebench: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").write_text("mine")
    done = pipebench("plugin", "new", "mine", "--into", str(tmp_path))
    assert done.code == 2
    assert "exists already" in done.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipebenchError, match="cannot make"):
        write_package(new_package("mine", "planner", tmp_path / "file"))


def test_what_is_written_is_told(pipebench: CommandLine, tmp_path: Path) -> None:
    done = pipebench("plugin", "new", "mine", "--into", str(tmp_path))
    assert done.code == 0
    assert f"{tmp_path}/mine/pyproject.toml" in done.out.splitlines()
    folder = tmp_path / "mine"
    assert done.err == f"next: pip install -e '{folder}[test]', then python -m pytest {folder}\n"
    assert 'test = ["' in (folder / "pyproject.toml").read_text()
