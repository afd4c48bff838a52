"""Names of files and folders that are not UTF-8: they are worked with, or refused by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipebench.domain.errors import ExitCode
from tests.cli.command_line import CommandLine

LAYERS = "name,forward_ms,backward_ms,activation_MB,weight_MB\nfirst,1,2,1,1\nlast,1,2,1,1\n"
ODD = os.fsdecode(b"mod\xe8le")
PLACE = ("--devices", "2", "--memory", "1GB", "--mini-batch", "8", "--regime", "sync")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")


def test_a_profile_whose_name_is_not_utf8_keeps_its_bytes_as_escapes(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    profile = tmp_path / f"{ODD}.csv"
    profile.write_text(LAYERS)
    plan = str(tmp_path / f"{ODD}.json")
    done = pipebench("plan", "uniform", "--profile", str(profile), *PLACE, "-o", plan)
    assert done.code == 0, done.err
    shown = pipebench("compare", "--planners", "uniform", "--plans", plan, "--profile", str(profile), *PLACE)
    assert shown.code == 0, shown.err
    assert r"mod\xe8le on 2 x" in shown.out


def test_a_working_folder_and_a_store_whose_names_are_not_utf8(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "layers.csv").write_text(LAYERS)
    monkeypatch.chdir(folder)
    store = str(folder / "results")
    for more in ((), ("--fresh", "--jobs", "2")):
        done = pipebench(
            "compare", "--planners", "uniform", "--profile", "layers.csv", *PLACE, "--out", store, *more
        )
        assert done.code == 0, done.err
    for page in ("x.html", "x.csv", "x.md", "x.svg"):
        done = pipebench("report", store, "-o", str(folder / page))
        assert done.code == 0, done.err
        assert (folder / page).read_text(encoding="utf-8")
    assert pipebench("rerun", store).code == 0


def test_a_planner_whose_name_is_not_utf8_is_refused_by_name(pipebench: CommandLine, tmp_path: Path) -> None:
    planner = tmp_path / f"{ODD}.py"
    planner.write_text("def plan(problem, context): ...\n")
    done = pipebench("compare", "--planners", str(planner), "--profile", "resnet50", *PLACE)
    assert done.code == ExitCode.USAGE
    assert rf"{tmp_path}/mod\xe8le.py' is not UTF-8, rows cannot name it (rename" in done.err


def test_a_name_that_nothing_expected_is_still_named(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipebench.cli.commands.reference import glossary

    def written(*_: object, **__: object) -> None:
        ODD.encode()

    monkeypatch.delenv("PIPEBENCH_DEBUG", raising=False)
    monkeypatch.setattr(glossary.command, "callback", written)
    done = pipebench("glossary")
    assert done.code == ExitCode.USAGE
    assert r"'mod\xe8le' is not UTF-8: rename the file or the folder" in done.err


def test_operators_in_letters_that_the_locale_has_not(tmp_path: Path) -> None:
    profile = tmp_path / "modèle 日本.csv"
    profile.write_text(LAYERS.replace("first", "日本"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pipebench", "plan", "uniform", "--profile", os.fsencode(profile), *PLACE],
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"??" in done.stdout
