"""pipebench list planners: a table out of the descriptors, at every width."""

import json
from pathlib import Path

import pytest

from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from tests.cli.command_line import CommandLine
from tests.hooks.distributions import GOOD, install

STRANGER = GOOD.replace("{name}", "stranger").replace(
    'load="{module}:plan"',
    'load="{module}:plan", reference="Doe, Roe, A Plan for Pipes, PPoPP 2031", '
    'capabilities=Capabilities(graphs="chain", regimes=("async", "sync"), replicas=True, round_robin=True)',
)


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120, 160, 200])
def test_lines_fit_and_no_word_is_split(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    entries = json.loads(pipebench("list", "planners", "--json").out)
    lines = pipebench("list", "planners").out.splitlines()
    assert max(map(len, lines)) <= width
    said = [value if isinstance(value, str) else ", ".join(value) for entry in entries for value in entry.values()]
    known = {word for text in said for word in text.split()} | {"-", "…"}
    headings = {"name", "paper", "regimes", "replicas", "graph", "summary"}
    assert {word for line in lines for word in line.split()} <= known | headings


def test_the_table_says_what_the_descriptors_say(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    head, *lines = pipebench("list", "planners").out.splitlines()
    assert head.split() == ["name", "paper", "regimes", "replicas", "graph"]
    rows = {line.split()[0]: line for line in lines}
    registered = Host().slot("planners")
    assert rows.keys() == registered.keys()
    for name, each in registered.items():
        assert isinstance(each.component, Planner)
        assert ", ".join(each.component.capabilities.regimes) in rows[name]
        assert ("  none  " in rows[name]) == (not each.component.capabilities.replicas)
    assert " ".join(rows["graphpipe"].split()) == "graphpipe Jeon et al., ASPLOS 2025 sync split any"
    assert "Beaumont et al., HAL 2020" in rows["madpipe"]
    assert "in turn" in rows["pipedream"]


def test_a_planner_of_somebody_else_has_its_line(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    source = STRANGER.replace("import Planner", "import Capabilities, Planner")
    install(tmp_path, "strange-plugin", source)
    monkeypatch.setenv("COLUMNS", "200")
    (line,) = [line for line in pipebench("list", "planners").out.splitlines() if line.startswith("stranger ")]
    assert " ".join(line.split()).startswith("stranger Doe et al., PPoPP 2031 async, sync in turn chain a planner")


def test_narrow_terminals_have_the_summary_only(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = pipebench("list", "planners").out
    assert "OSDI" not in out
    for entry in json.loads(pipebench("list", "planners", "--json").out):
        assert entry["summary"] in " ".join(out.split())


def test_json_has_the_fields(pipebench: CommandLine) -> None:
    entries = {entry["name"]: entry for entry in json.loads(pipebench("list", "planners", "--json").out)}
    assert entries["madpipe"] | {"provider": "", "summary": ""} == {
        "name": "madpipe",
        "summary": "",
        "provider": "",
        "paper": "Beaumont et al., HAL 2020",
        "regimes": ["async"],
        "replicas": "none",
        "graph": "any",
    }
    assert "paper" not in json.loads(pipebench("list", "schedulers", "--json").out)[0]
