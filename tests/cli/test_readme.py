"""The README shows what the command prints."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```(?:\w*)\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def without_search_times(text: str) -> list[list[str]]:
    """Words line by line; the one column that differs from run to run is hidden."""
    hidden = re.sub(r"\d[\d.]*( \| \d[\d.]*)? (ms|us|s)\b", "TIME", text)
    return [line.split() for line in hidden.splitlines()]


def test_the_sample_is_what_the_main_job_prints(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    (sample,) = [block for block in blocks() if block.startswith("transformer[")]
    monkeypatch.setenv("COLUMNS", "100")
    done = pipebench("compare", "--planners", "madpipe,graphpipe")
    assert done.code == 0, done.err + done.out
    shown = without_search_times(sample)
    assert without_search_times(done.out)[: len(shown)] == shown
    assert max(map(len, done.out.splitlines())) <= 100
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    "command", [c for block in blocks() for c in block.splitlines() if c.startswith("pipebench draw")]
)
def test_draw(pipebench: CommandLine, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert pipebench(*shlex.split(command)[1:]).code == 0


def test_the_planner_of_the_readme_stands_in_the_table(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = [block for block in blocks() if block.startswith("# mine.py")]
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(code)
    small = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
    done = pipebench("compare", "--planners", "./mine.py,uniform", *small)
    assert done.code == 0, done.out
    (line,) = [line for line in done.out.splitlines() if line.startswith("./mine.py ")]
    assert len(re.findall(r" \d+\.\d\b", line)) >= 4, line  # samples/s and % of the bound, in both regimes


def test_the_cluster_of_the_readme_loads(pipebench: CommandLine, tmp_path: Path) -> None:
    (text,) = [block for block in blocks() if block.startswith('name = "mine"')]
    file = tmp_path / "mine.toml"
    file.write_text(text)
    small = ("--models", "mmt[branches=2,layers=2]", "--cluster", str(file), "--devices", "4", "--mini-batch", "8")
    done = pipebench("compare", "--planners", "uniform", *small)
    assert done.code == 0, done.err
    assert "on 4 x A100" in done.out


def test_what_is_said_to_ship_ships(pipebench: CommandLine) -> None:
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", README.read_text(), re.MULTILINE)
    shipped = {slot: set(re.findall(r"`([^`]+)`", names)) for slot, names in rows if slot != "slot"}
    assert {"planners", "schedulers", "models", "profiles", "clusters", "suites", "formats"} <= set(shipped)
    for slot, names in shipped.items():
        listed = {entry["name"] for entry in json.loads(pipebench("list", slot, "--json").out)}
        assert listed <= names, slot


def test_its_pictures_are_those_that_its_commands_draw(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = [block for block in blocks() if "docs/pictures" in block]
    commands = [shlex.split(line)[1:] for line in block.splitlines() if "-o" in line or "--picture" in line]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    for words in commands[:3]:
        assert pipebench(*words).code == 0, words
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text())
    assert len(shown) == 2
    for picture in shown:
        assert (tmp_path / picture).read_text() == (README.parent / picture).read_text(), picture
