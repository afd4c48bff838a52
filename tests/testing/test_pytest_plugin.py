"""The kit in pytest: one test for each check, waivers as skips, the totals at the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
import pytest

{mark}
def test_conformance(pipebench_check):
    pipebench_check()
"""
PLANNER = "def plan(problem, context):\n    raise KeyError('op')\n"


def run(folder: Path, mark: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_it.py").write_text(TEST.replace("{mark}", mark))
    command = [sys.executable, "-m", "pytest", "-p", "pipebench.testing.plugin", "-p", "no:cacheprovider"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, "--strict-markers", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


def test_each_check_is_a_test(tmp_path: Path) -> None:
    done = run(tmp_path, '@pytest.mark.pipebench("simulate", "analytic")', "-v")
    assert done.returncode == 0, done.stdout
    assert "test_it.py::test_conformance[simulate:cancel] PASSED" in done.stdout
    assert "test_it.py::test_conformance[simulate:dead-worker] SKIPPED" in done.stdout
    assert "test_it.py::test_conformance[analytic:profile] PASSED" in done.stdout
    assert "pipebench conformance: 19 run, 2 waived, 0 failed" in done.stdout
    assert "waived simulate: dead-worker: it runs in process" in done.stdout


def test_a_fault_fails_without_a_traceback_of_the_kit(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLANNER)
    done = run(tmp_path, '@pytest.mark.pipebench("./mine.py")', "-k", "pins")
    assert done.returncode == 1
    assert "./mine.py: pins: pin micro_batch (sync): crashed: KeyError: 'op'" in done.stdout
    assert "verdicts.py" not in done.stdout
    assert "pipebench conformance: 1 run, 0 waived, 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("", 'say which plugin: @pytest.mark.pipebench("mine")'),
        ('@pytest.mark.pipebench("madpip")', "did you mean 'madpipe'?"),
    ],
)
def test_a_name_that_is_missing_or_wrong_is_told(tmp_path: Path, mark: str, told: str) -> None:
    done = run(tmp_path, mark)
    assert done.returncode != 0
    assert told in done.stdout


def test_loading_it_costs_nothing_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n    loaded = set(sys.modules)\n"
        "    assert 'pipebench.testing.plugin' in loaded\n"
        "    assert not {'numpy', 'numba', 'click', 'pluggy.x', 'pipebench.hooks.manager'} & loaded\n"
    )
    done = run(tmp_path, "@pytest.mark.skip", "test_other.py")
    assert done.returncode == 0, done.stdout
    assert "conformance" not in done.stdout
