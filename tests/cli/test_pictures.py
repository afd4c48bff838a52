"""draw -o, show --picture and --graph, report, compare --html: files as a user gets them."""

import json
import os
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pipebench.report.chart.terminal import LETTER, LINE
from tests.cli.command_line import CommandLine
from tests.report.chart.drawn import lines_of
from tests.report.gantt.trace_events import broken_rules
from tests.report.html.page import Page

SMALL = ("--models", "mmt[branches=2,layers=2]", "--cluster", "summit", "--devices", "4", "--mini-batch", "8")


TWO = ("--models", "mmt[branches=3,layers=2],mmt[branches=2,layers=2]", *SMALL[2:])


def words(path: Path) -> list[str]:
    return [each.text or "" for each in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_several_schedules_in_one_picture(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    done = pipebench("draw", "gpipe,1f1b,1f1b*", "--stages", "3", "--micro-batches", "4", "-o", str(file))
    assert done.code == 0, done.err
    titles = [text for text in words(file) if "bubble" in text]
    assert [title.split(":")[0] for title in titles] == ["gpipe", "1f1b", "1f1b*"]
    assert "micro-batches in flight 3,2,1" in titles[1]


def test_devices_that_run_several_stages_in_turn(pipebench: CommandLine) -> None:
    typed = ("draw", "1f1b,interleaved-1f1b,zb-v", "--weight", "1", "--json")
    plain, interleaved, vee = json.loads(pipebench(*typed).out)
    # (p - 1) / v of a forward and a backward are lost, v = 2 (Narayanan et al. 2021, section 2.2).
    assert (plain["total"], interleaved["total"]) == (33, 24 + 3 * 3 / 2)
    assert interleaved["live"] == [11, 9, 7, 5]
    assert vee["total"] < interleaved["total"]
    assert vee["live"] == [8, 8, 8, 8]
    assert {len(each["trace"]["lanes"]) for each in (plain, interleaved, vee)} == {4}
    alone = pipebench("draw", "interleaved-1f1b", "--vpp", "1", "--json")
    assert json.loads(alone.out)[0]["total"] == 33
    assert "'v' has two stages on each device set" in pipebench("draw", "zb-v", "--vpp", "3").err
    assert "micro-batches in flight 5.5,4.5,3.5,2.5" in pipebench("draw", "interleaved-1f1b").out


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--forward", "-1", "forward is -1, it must be a time from 0"),
        ("--transfer", "inf", "transfer is inf, it must be a time from 0"),
        ("--weight", "3", "weight is 3, more than the backward that it is a part of, 2"),
    ],
)
def test_a_time_that_is_none_is_named_as_it_was_typed(
    pipebench: CommandLine, option: str, value: str, said: str
) -> None:
    done = pipebench("draw", "1f1b", option, value)
    assert done.code == 2
    assert said in done.err


def test_a_split_backward_without_weight_gradients_is_said(pipebench: CommandLine) -> None:
    """Zero-bubble schedules are no better than 1F1B where there is nothing to move."""
    assert "say --weight, such as 1" in pipebench("draw", "1f1b,zb-h1").err
    assert "--weight" not in pipebench("draw", "1f1b,zb-h1", "--weight", "1").err
    assert "--weight" not in pipebench("draw", "1f1b").err


def test_one_that_refuses_leaves_the_others_drawn(pipebench: CommandLine) -> None:
    done = pipebench("draw", "interleaved-1f1b,zb-v", "--vpp", "4")
    assert done.code == 0
    assert "zb-v is not drawn" in done.err
    assert "--vpp 2" in done.err
    assert done.out.startswith("interleaved-1f1b: time")
    odd = pipebench("draw", "chimera,1f1b", "--micro-batches", "5", "--json")
    assert [each["scheduler"] for each in json.loads(odd.out)] == ["1f1b"]
    assert "draw an even number" in odd.err


def test_two_pipelines_on_the_same_devices(pipebench: CommandLine) -> None:
    """Chimera, figure 3: four stages, four micro-batches, 16 slots with B = 2 F."""
    (drawn,) = json.loads(pipebench("draw", "chimera", "--micro-batches", "4", "--json").out)
    assert drawn["total"] == 16
    assert len(drawn["trace"]["lanes"]) == 4
    assert drawn["live"] == [3, 4, 4, 3]


def test_later_stages_of_a_device_are_paler(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    for scheduler, paler in (("1f1b", 0), ("interleaved-1f1b", 4 * 8 * 2)):
        assert pipebench("draw", scheduler, "-o", str(file)).code == 0
        assert file.read_text().count("fill-opacity") == paler


def test_a_schedule_for_perfetto(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    assert pipebench("draw", "1f1b", "--transfer", "0.25", "-o", str(file)).code == 0
    assert broken_rules(json.loads(file.read_text())) == []
    refused = pipebench("draw", "1f1b,gpipe", "-o", str(file))
    assert refused.code == 2
    assert "one timeline, not 2" in refused.err
    assert "end it in .svg" in pipebench("draw", "1f1b", "-o", str(tmp_path / "x.bmp")).err


def test_a_small_drawing_does_not_wait_for_a_compiler(pipebench: CommandLine, tmp_path: Path) -> None:
    typed = ("draw", "gpipe,1f1b", "--stages", "3", "--transfer", "0.4", "--json")
    nothing = tmp_path / "kernels"
    done = subprocess.run(
        [sys.executable, "-m", "pipebench", *typed],
        env={**os.environ, "NUMBA_CACHE_DIR": str(nothing)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not list(nothing.rglob("*.nb*"))
    assert json.loads(done.stdout) == json.loads(pipebench(*typed).out)


@pytest.mark.parametrize(("planner", "title"), [("uniform", "F0"), ("contiguous-exact", "period")])
def test_plans(pipebench: CommandLine, tmp_path: Path, planner: str, title: str) -> None:
    plan, picture, graph = tmp_path / "p.json", tmp_path / "p.svg", tmp_path / "g.svg"
    assert pipebench("plan", planner, *SMALL, "-o", str(plan)).code == 0
    shown = pipebench("show", str(plan), "--picture", str(picture), "--graph", str(graph))
    assert shown.code == 0, shown.err
    assert "peak memory" in shown.out or "period" in shown.out
    assert any(title in text for text in words(picture))
    assert any(text.startswith("stage 1 on gpu") for text in words(graph))
    trace = tmp_path / "p.trace.json"
    assert pipebench("show", str(plan), "--picture", str(trace)).code == 0
    events = json.loads(trace.read_text())
    assert broken_rules(events) == []
    assert {"X", "C"} <= {event["ph"] for event in events["traceEvents"]}


def test_profiles_and_what_has_no_picture(pipebench: CommandLine, tmp_path: Path) -> None:
    picture = tmp_path / "p.svg"
    profile = Path(__file__).parents[2] / "profiles" / "resnet50.json"
    assert pipebench("show", str(profile), "--picture", str(picture)).code == 0
    assert any(text.startswith("resnet50 on") for text in words(picture))
    assert "no stages" in pipebench("show", str(profile), "--graph", str(picture)).err


def test_compare_writes_a_page_and_a_store_reports(pipebench: CommandLine, tmp_path: Path) -> None:
    page, store = tmp_path / "c.html", tmp_path / "store"
    done = pipebench(
        "compare",
        "--planners",
        "uniform,pipedream",
        *SMALL,
        "--regime",
        "sync",
        "--html",
        str(page),
        "--out",
        str(store),
    )
    assert done.code == 0, done.err
    read = Page(page.read_text())
    commands = [text for tag, text in read.words if tag == "pre"]
    assert commands[0].startswith("pipebench compare --planners uniform,pipedream --models 'mmt[")
    assert all(command.startswith("pipebench rerun '…/store' --row ") for command in commands[1:])
    assert len(commands) == 4  # of the page, of both planners, of the yardstick
    assert str(tmp_path) not in page.read_text()
    assert read.count("svg") >= 3
    again = shlex.split(commands[1].replace("…", str(tmp_path)))[1:]
    rerun = pipebench(*again)
    assert rerun.code == 0, rerun.out + rerun.err
    report = tmp_path / "r.html"
    assert pipebench("report", str(store), "-o", str(report)).code == 0
    assert Page(report.read_text()).count("svg") == read.count("svg")
    assert str(tmp_path) not in report.read_text()
    for name, lines in (("r.md", 7), ("r.csv", 4)):
        assert pipebench("report", str(store), "-o", str(tmp_path / name)).code == 0
        assert len((tmp_path / name).read_text().splitlines()) == lines


def test_the_page_says_of_each_problem_what_the_terminal_says(pipebench: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    done = pipebench("compare", "--planners", "uniform,pipedream", *SMALL, "--rounds", "2", "--html", str(page))
    assert done.code == 0, done.err
    told = [text for tag, text in Page(page.read_text()).words if tag == "li"]
    printed = " ".join(done.out.split())
    assert any(line.startswith("data-parallel to") for line in told)
    assert [line for line in told if line not in printed] == []
    assert "Timelines of one mini-batch, the best first" in page.read_text()


def test_a_report_as_a_picture_is_what_compare_prints(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order that was typed, though trials run in another one."""
    monkeypatch.setenv("COLUMNS", "90")
    store, picture = str(tmp_path / "store"), tmp_path / "x.svg"
    names = "uniform,pipedream,alpa-inter"
    done = pipebench("compare", "--planners", names, *TWO, "--out", store)
    assert done.code == 0, done.err
    assert pipebench("report", store, "-o", str(picture), "--columns", "90").code == 0
    shown = lines_of(picture.read_text(), LETTER, LINE)
    said = [line.rstrip() for line in done.out.splitlines()]
    assert shown == said[: len(shown)]
    assert len(said) - len(shown) <= 1  # an empty line
    (title,) = ET.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}title")
    assert title.text == "pipebench: store"
    wrong = pipebench("report", store, "-o", str(tmp_path / "x.html"), "--columns", "90")
    assert (wrong.code, "--columns is about a picture" in wrong.err) == (2, True)


def test_without_a_store_a_row_is_repeated_by_its_planner(pipebench: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    pipebench("compare", "--planners", "uniform", *SMALL, "--html", str(page))
    commands = [text for tag, text in Page(page.read_text()).words if tag == "pre"]
    assert commands[1].startswith("pipebench compare --models 'mmt[branches=2,layers=2]'")
    assert commands[1].endswith("--planners uniform")
    assert "--html" not in commands[1]


def test_wrong_endings_and_folders_are_said_before_anything_runs(pipebench: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    for options, message in (
        (("--html", str(tmp_path / "x.pdf")), "end it in .html"),
        (("--html", str(tmp_path / "none" / "x.html")), "there is no folder"),
        (("--html", str(tmp_path / "folder.html")), "cannot write '"),
    ):
        done = pipebench("compare", "--planners", "uniform", *SMALL, *options)
        assert (done.code, done.out) == (2, "")
        assert message in done.err
    assert "end it in" in pipebench("report", str(tmp_path), "-o", str(tmp_path / "x.docx")).err
