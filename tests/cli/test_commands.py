"""list, info, show, draw, schema: what they print, and that --json is JSON."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install
from tests.shared_data import shared_data


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("planners", "madpipe"),
        ("schedulers", "1f1b*"),
        ("executors", "simulate"),
        ("profilers", "analytic"),
        ("models", "mmt"),
        ("formats", "pipedream"),
        ("clusters", "summit"),
        ("frameworks", "megatron"),
        ("profiles", "resnet50"),
        ("suites", "quick"),
    ],
)
def test_list(pipebench: CommandLine, what: str, name: str) -> None:
    entries = {entry["name"]: entry for entry in json.loads(pipebench("list", what, "--json").out)}
    assert name in entries
    assert all(entry["summary"] for entry in entries.values())
    if what == "planners":  # a table: test_planner_list.py
        return
    lines = pipebench("list", what).out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[n, e["summary"]] for n, e in entries.items()]


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("profiles", "resnet50          175 operators, micro-batches 1, 2, 4, 8, V100-SXM2-16GB"),
        ("clusters", "summit       node of 4: 50 GB/s; network: 12.5 GB/s (12.5 shared by a node)"),
        ("clusters", "flat         network: 12.5 GB/s"),
    ],
)
def test_what_ships_is_summarised(pipebench: CommandLine, what: str, line: str) -> None:
    assert line in pipebench("list", what).out.splitlines()


def test_info_has_options_reference_and_deviations(pipebench: CommandLine) -> None:
    text = pipebench("info", "graphpipe").out
    facts = re.findall(r"^  (\w+) +(\S.*)$", text, re.MULTILINE)
    assert ("fidelity", "reconstructed") in facts
    begins = [found.start(2) for line in text.splitlines() if (found := re.match(r"  (\w+) +(\S)", line))]
    assert len(set(begins)) == 1
    assert "option" in text
    cited = " ".join(pipebench("info", "graphpipe", "--cite").out.split())
    assert "GraphPipe" in cited
    assert "deviation" in cited
    assert "the in-flight rule in place of table 2 (inferred" in cited
    assert "option " not in cited
    shipped = pipebench("info", "torchtitan-eager").out
    assert shipped.startswith("torchtitan-eager (framework): torchtitan as it runs by itself")
    assert "elementwise        eager" in shipped
    assert "(cluster): node of 8" in pipebench("info", "dgx-h100").out
    told = pipebench("info", "layers-csv").out
    assert told.startswith("layers-csv (format): table of layers, units in the header\n")
    assert "micro_batch: " in told
    (profile,) = json.loads(pipebench("info", "llama3-8b-h200", "--json").out)
    assert (profile["kind"], profile["name"]) == ("profile", "llama3-8b-h200")
    (described,) = json.loads(pipebench("info", "pipedream", "--json").out)
    assert {"name": "order", "type": "branch | level", "default": "branch"} in described["options"]


@pytest.mark.parametrize("kind", ["problem", "plan", "bare-plan", "profile", "schedule", "trace", "rows", "suite"])
def test_schema(pipebench: CommandLine, kind: str) -> None:
    assert "$defs" in json.loads(pipebench("schema", kind).out)


def test_show_a_shipped_and_a_foreign_profile(pipebench: CommandLine) -> None:
    profile = shared_data("pipedream/vgg16.txt")
    assert "40 operators" in pipebench("show", str(profile)).out
    assert json.loads(pipebench("show", str(profile), "--json").out)["name"] == "vgg16"


def test_show_takes_a_profile_that_ships_by_its_name_unless_a_file_has_it(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(pipebench("show", "resnet50", "--json").out)["name"] == "resnet50"
    Path("resnet50").write_text("{}")
    assert pipebench("show", "resnet50").code == 2


def test_draw(pipebench: CommandLine) -> None:
    done = pipebench("draw", "gpipe,1f1b", "--stages", "2", "--micro-batches", "3")
    assert done.code == 0
    assert done.out.count("bubble 25.0 %") == 2
    assert "micro-batches in flight 3,3" in done.out
    assert "micro-batches in flight 2,1" in done.out
    assert done.out.splitlines()[-1].startswith("F0= forward, B0- backward, . idle")
    endless = pipebench("draw", "1f1b*", "--micro-batches", "3").out
    assert "the first 3 micro-batches of a run without end" in endless
    assert "B2" in endless
    assert "B3" not in endless.splitlines()[2]
    drawings = json.loads(pipebench("draw", "1f1b", "--json").out)
    assert drawings[0]["trace"]["kinds"].count("F") == 32


def test_show_says_what_is_wrong_with_a_plan(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    pipebench("plan", "uniform", "--profile", "resnet50", "--devices", "2", "--mini-batch", "8", "-o", str(file))
    shown = pipebench("show", str(file)).out
    assert "sync: valid" in shown
    assert len([line for line in shown.splitlines() if line.strip()[:1].isdigit()]) >= 2
    text = file.read_text()
    document = json.loads(text)
    document["content"]["plan"]["stages"][0]["operators"].pop()
    file.write_text(json.dumps(document))
    assert "coverage" in pipebench("show", str(file)).out
    document["content"]["problem"]["pins"] = {"pipeline": 1}
    document["content"]["plan"]["stages"] = json.loads(text)["content"]["plan"]["stages"]
    file.write_text(json.dumps(document))
    shown = pipebench("show", str(file)).out
    assert "shape: pipeline is pinned to 1" in shown
    assert "forward  backward" in shown


def test_the_traceback_of_a_planner_that_crashes_is_shown(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def plan(problem, context):\n    print('so far')\n    return {}['key']\n")
    done = pipebench("plan", str(file), "--profile", "resnet50", "--devices", "2", "--mini-batch", "8")
    assert (done.code, done.out) == (5, "")
    assert "so far\nTraceback" in done.err
    assert f'  File "{file}", line 3, in plan' in done.err
    assert done.err.endswith(f"pipebench: {file}: crashed: KeyError: 'key' (mine.py, line 3)\n")


def test_a_plugin_that_raises_leaves_every_command_working(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "raising-plugin", "raise RuntimeError('no licence')")
    small = ("--profile", "resnet50", "--devices", "2", "--mini-batch", "8")
    for arguments in (
        ("compare", "--planners", "uniform", *small),
        ("plan", "uniform", *small),
        ("draw", "gpipe"),
        ("list",),
        ("info", "madpipe"),
    ):
        done = pipebench(*arguments)
        assert done.code == 0, done.err
        warnings = [line for line in done.err.splitlines() if line.startswith("warning")]
        assert len(warnings) == 1
        assert "raising-plugin 1.2" in warnings[0]
        assert "no licence" in warnings[0]
        assert done.out
