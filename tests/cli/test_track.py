"""pipebench track, as a user types it: nights, checks, acknowledgements, and what is wrong said in one line."""

import errno
import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipebench.bench.trials.comparison import Request
from pipebench.cli.main import run
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.manager import Host
from pipebench.track.against.installation import Side, Sides
from pipebench.track.judgement.judgement import judge
from pipebench.track.measurement.measurement import Measurement
from pipebench.track.nights.conditions import this_machine
from pipebench.track.nights.history import add_night, open_history
from pipebench.track.nights.night import Night
from tests.cli.command_line import CommandLine
from tests.track.against import made_repository
from tests.track.against.made_repository import git
from tests.track.made_nights import MACHINE, add_nights, measured, night

SCRIPT = """
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    operators = tuple(operator.name for operator in problem.profile.graph.operators)
    context.count("states", {states})
    size = problem.profile.costs[0].micro_batches[0]
    return Plan(stages=(Stage(operators=operators, devices=(0,), micro_batch=size),))
"""
SMALL = ("--profile", "mmt", "--devices", "1")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two nights; in the second a counter grew."""
    folder = tmp_path / "history"
    add_night(folder, MACHINE, night(0))
    add_night(folder, MACHINE, night(1, measured(exact={"work.states": 11})))
    return folder


def test_a_night_is_recorded_checked_and_flagged_when_the_planner_works_more(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    script, folder = tmp_path / "mine.py", tmp_path / "history"
    record = ("track", "record", "--history", str(folder), "--planners", str(script), *SMALL, "--budget", "3s")
    script.write_text(SCRIPT.format(states=5))
    done = pipebench(*record)
    assert done.code == 0, done.err
    assert "a machine not seen before" in done.err
    assert "1 subject, 1 timed" in done.err
    check = ("track", "check", "--history", str(folder))
    done = pipebench(*check)
    assert done.code == 0, done.out
    assert "not enough history (0 of 30)" in done.out
    script.write_text(SCRIPT.format(states=6))
    assert pipebench(*record).code == 0
    files = tmp_path / "out" / "r.html", tmp_path / "out" / "r.md"
    done = pipebench(*check, "--html", str(files[0]), "--markdown", str(files[1]))
    assert done.code == 1
    assert "work: states 5 -> 6 (+20 %)" in done.out
    assert all("states" in file.read_text() for file in files)
    event = re.search(r"track ack ([0-9a-f]{8})", done.out)
    assert event is not None
    done = pipebench("track", "ack", event[1], "--reason", "wider search", "--history", str(folder))
    assert done.code == 0, done.err
    done = pipebench(*check)
    assert done.code == 0
    assert "acknowledged: wider search" in done.out


def test_a_planner_that_never_worked_is_named_by_both_commands(pipebench: CommandLine, tmp_path: Path) -> None:
    script, folder = tmp_path / "mine.py", str(tmp_path / "history")
    script.write_text("import nosuchmodule\n" + SCRIPT.format(states=5))
    done = pipebench("track", "record", "--history", folder, "--planners", str(script), *SMALL, "--budget", "20s")
    named = r"mine(\.py)? on .*mmt.*: crashed: .*nosuchmodule"
    assert re.search(named, done.err), done.err
    assert done.code == 0
    done = pipebench("track", "check", "--history", folder)
    assert re.search(named, " ".join(done.out.split())), done.out
    assert "Nothing was measured: no planner gave a plan." in done.out
    assert done.code == 4


def test_a_history_that_cannot_be_written_is_said_before_anything_runs(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(states=5))
    record = ("track", "record", "--planners", str(script), *SMALL, "--budget", "3s", "--history")
    (tmp_path / "file").touch()
    done = pipebench(*record, str(tmp_path / "file" / "nights"))
    assert (done.code, done.out) == (2, "")
    assert "file/nights': not a directory" in done.err
    assert "exact columns" not in done.err


def test_a_night_that_cannot_be_added_is_printed(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipebench.track.nights.history.NightJournal._write", full)
    script, folder = tmp_path / "mine.py", tmp_path / "history"
    script.write_text(SCRIPT.format(states=5))
    record = ("track", "record", "--planners", str(script), *SMALL, "--budget", "3s", "--history")
    done = pipebench(*record, str(folder))
    assert (done.code, "no space left on device" in done.err) == (2, True)
    (measured,) = json.loads(done.out)["measured"]
    assert measured["exact"]["work.states"] == 5


@pytest.mark.parametrize("hangs", ["while it plans", "on import"])
def test_a_budget_ends_a_search_that_hangs(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    """It counts as not run: neither as a timeout of the planner nor as a crash."""
    monkeypatch.setattr("pipebench.bench.searches.isolated.LEAST_S", 1.0)
    script, folder = tmp_path / "mine.py", str(tmp_path / "history")
    text, wait = SCRIPT.format(states=5), "import time; time.sleep(1000)\n"
    hanging = (
        f"{wait}{text}" if hangs == "on import" else text.replace("    operators", f"    {wait}    operators")
    )
    script.write_text(hanging)
    began = time.monotonic()
    record = ("track", "record", "--history", folder, "--planners", str(script), *SMALL, "--budget", "1s")
    done = pipebench(*record, "--timeout", "120")
    assert time.monotonic() - began < 100
    assert (done.code, "0 subjects" in done.err) == (4, True)
    said = open_history(folder).nights[0].night.notices
    assert len(said) == 1
    assert re.match("the budget ended while these searched, which counts as not run: .*mine.* on mmt", said[0])


def test_a_failing_check_writes_its_report(pipebench: CommandLine, history: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    assert pipebench("track", "check", "--history", str(history), "--html", str(file)).code == 1
    assert "Worse" in file.read_text()
    assert pipebench("track", "report", "--history", str(history)).code == 0


def test_a_report_nobody_can_write_is_said_first(pipebench: CommandLine, history: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = pipebench("track", "check", "--history", str(history), "--html", str(tmp_path / "file" / "r.html"))
    assert (done.code, done.out) == (2, "")


def test_json_is_on_stdout(pipebench: CommandLine, history: Path) -> None:
    done = pipebench("track", "check", "--history", str(history), "--json")
    read = json.loads(done.out)
    assert (done.code, read["verdict"], read["judgement"]["events"][0]["outcome"]) == (1, "worse", "worse")


def test_no_history_is_nothing_measured(pipebench: CommandLine, tmp_path: Path) -> None:
    done = pipebench("track", "check", "--history", str(tmp_path / "none"))
    assert (done.code, "there is no history" in done.err) == (4, True)
    assert done.out == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("nights.jsonl", '"spent_s":10.0', '"spent_s":11.0'), "line 1 is damaged: it was changed"),
        (("store.json", '"version":2', '"version":9'), "install a newer pipebench"),
    ],
)
def test_a_history_that_is_wrong_is_one_line(
    pipebench: CommandLine, history: Path, change: tuple[str, str, str], said: str
) -> None:
    name, before, after = change
    (history / name).write_text((history / name).read_text().replace(before, after, 1))
    for command in ("check", "report"):
        done = pipebench("track", command, "--history", str(history))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert said in done.err


def test_a_clock_behind_the_history_stops_a_night_before_it_begins(pipebench: CommandLine, tmp_path: Path) -> None:
    later = night(0, recorded_at=datetime(2999, 1, 1, tzinfo=UTC).isoformat())
    add_night(tmp_path, this_machine(), later)
    done = pipebench("track", "record", "--history", str(tmp_path))
    assert done.code == 2
    assert "two clocks disagree" in done.err
    assert "nothing was added" in done.err


def test_only_open_events_are_acknowledged(pipebench: CommandLine, history: Path) -> None:
    ack = ("track", "ack", "--history", str(history))
    assert "unknown open event 'deadbeef'" in pipebench(*ack, "deadbeef", "--reason", "x").err
    assert pipebench(*ack, "--reason", "x").code == 2
    assert "has no reason" in pipebench(*ack, "--all", "--reason", " ").err
    assert pipebench(*ack, "--all", "--reason", "x").code == 0
    assert "nothing is open" in pipebench(*ack, "--all", "--reason", "x").err


def test_events_that_are_not_open_say_why(pipebench: CommandLine, tmp_path: Path) -> None:
    counts = (10, 9, 11, 12)
    add_nights(tmp_path, MACHINE, [night(i, measured(exact={"work.states": n})) for i, n in enumerate(counts)])
    events = judge(open_history(tmp_path)).events
    assert [event.state for event in events] == ["told", "open", "open"]
    better, first, second = (event.identity for event in events)
    ack = ("track", "ack", "--reason", "x", "--history", str(tmp_path))
    assert pipebench(*ack, first).code == 0
    said = f"event '{better}' needs no acknowledgement: nothing became worse by it (open: {second})"
    done = pipebench(*ack, better)
    assert (done.code, done.err) == (2, f"pipebench: {said}\n")
    done = pipebench(*ack, first)
    assert re.search(rf"event '{first}' is acknowledged already \(since 20\d\d-\d\d-\d\d: x\)", done.err)


def test_only_the_usual_file_of_acknowledgements_may_be_absent(pipebench: CommandLine, history: Path) -> None:
    file = history.parent / "acknowledged.toml"
    ack = ("track", "ack", "--all", "--reason", "x", "--history", str(history), "--acknowledged", str(file))
    for command in ("check", "report", "page"):
        done = pipebench("track", command, "--history", str(history), "--acknowledged", str(file))
        assert (done.code, done.out) == (2, "")
        assert f"there is no file '{file}'" in done.err
        assert "`pipebench track ack` writes it" in done.err
    assert pipebench(*ack).code == 0
    done = pipebench(
        "track", "check", "--history", str(history), "--acknowledged", f"{file.parent}/acknowleged.toml"
    )
    assert (done.code, "did you mean 'acknowledged.toml'?" in done.err) == (2, True)
    assert pipebench("track", "check", "--history", str(history), "--acknowledged", str(file)).code == 0


REGIMES_NOTE = "uniform plans for both regimes; sync is recorded, --regime both records both"


@pytest.mark.parametrize(
    ("words", "regimes"),
    [
        ((), ["sync", "async"]),
        (("--regime", "both"), ["sync", "async", "async"]),
        (("--regime", "async"), ["async", "async"]),
    ],
)
def test_a_night_is_of_the_regime_that_is_asked_for(
    pipebench: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    regimes: list[str],
) -> None:
    """A planner that plans for both, and one that plans for async only."""
    listed: list[str] = []

    def list_subjects(host: Host, request: Request, *_: object) -> Night:
        listed.extend(each.subject.regime for each in Measurement(host, request, 1.0).tracked)
        return night(0)

    monkeypatch.setattr("pipebench.track.measurement.record.record", list_subjects)
    planners = ("--planners", "uniform,contiguous-exact")
    done = pipebench("track", "record", "--history", str(tmp_path), *planners, *SMALL, *words)
    assert (done.code, listed) == (0, regimes)
    assert (f"note: {REGIMES_NOTE}\n" in done.err) == (not words)


def test_a_workflow_is_not_replaced_without_being_told_to(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "nightly.yml"
    init = ("track", "init", "--output", str(file))
    assert pipebench(*init, "--planners", "mine", "--regime", "both").code == 0
    assert "--planners mine --regime both" in file.read_text()
    file.unlink()
    assert pipebench(*init, "--planners", "mine").code == 0
    assert "--planners mine" in file.read_text()
    assert pipebench(*init, "--planners", "mine").code == 0
    assert pipebench(*init).code == 2
    assert pipebench(*init, "--force").code == 0
    assert pipebench(*init, "--force", "--budget", "soon").code == 2


def test_a_planner_that_is_not_here_is_named_when_the_workflow_is_written(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    named = "unifrm,madpipe,./mine.py,cmd:./planner"
    done = pipebench("track", "init", "--output", str(tmp_path / "nightly.yml"), "--planners", named)
    assert done.code == 0
    notes = re.findall(r"planner '(.*?)' is not installed here \(did you mean '(.*?)'\?", done.err)
    assert notes == [("unifrm", "uniform")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("chek",), "did you mean 'check'"),
        (("record", "--import-only"), "--benchmark-json"),
        (("record", "--budget", "-1s"), "is not a duration"),
        (("check", "--planners", "x"), "--planners would be for --against"),
        (("init", "--suite", "chains,quik"), "unknown suite 'quik' (did you mean 'quick'?"),
        (("check", "--devices", "3"), "--devices would be for --against"),
        (("check", "--seq", "3"), "--seq would be for --against"),
    ],
)
def test_wrong_options(pipebench: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    done = pipebench("track", *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_suite_that_is_not_there_is_named_before_both_are_installed(pipebench: CommandLine) -> None:
    done = pipebench("track", "check", "--against", "HEAD", "--suite", "quik")
    assert (done.code, "installing" in done.err) == (2, False)
    assert "unknown suite 'quik' (did you mean 'quick'?" in done.err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from pipebench.cli.main import run\n"
        "for words in ([], ['record'], ['check'], ['report'], ['ack'], ['init']):\n"
        "    run(['track', *words, '--help'])\n"
        "found = {'numpy', 'numba', 'networkx', 'pulp', 'highspy'} & set(sys.modules)\n"
        "sys.exit(str(found) if found else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_both_revisions_are_installed_and_each_side_runs_its_own(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = made_repository.repository(tmp_path / "repository")
    planner = top / "mine" / "planner.py"
    planner.write_text(planner.read_text().replace('count("steps", 1)', 'count("steps", 2)'))
    monkeypatch.chdir(top / "mine")
    monkeypatch.setattr("pipebench.track.against.comparison.MOST_PAIRS", 1)
    against = ("track", "check", "--against", "HEAD", "--planners", "mine", "--budget", "60s", *SMALL)
    done = pipebench(*against)
    assert done.code == 1, done.err
    assert "work: steps 1 -> 2 (+100 %)" in " ".join(done.out.split())
    assert git(top, "status", "--porcelain").split() == ["M", "mine/planner.py"]


def test_both_sides_are_asked_what_the_user_asked(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def install_sides(*_: object) -> Sides:
        side = Side("HEAD", Path("site"), Path("cache"))
        return Sides("mine", side, side)

    def compare_sides(sides: Sides, arguments: list[str], *_: object) -> None:
        asked.extend(arguments)
        raise PipebenchError("asked")

    monkeypatch.setattr("pipebench.track.against.installation.install_sides", install_sides)
    monkeypatch.setattr("pipebench.track.against.comparison.compare_sides", compare_sides)
    words = ["--planners", "mine", "--models", "llm", "--profile", "mmt", "--config", "c.json", "--seq", "8"]
    words += ["--suite", "quick", "--devices", "4", "--micro-batch", "2", "--tp", "2", "--cp", "1"]
    pipebench("track", "check", "--against", "HEAD", *words)
    # one option after the other, each with its value
    assert sorted(zip(asked[::2], asked[1::2], strict=True)) == sorted(zip(words[::2], words[1::2], strict=True))


def test_main_knows_the_command() -> None:
    assert run(["track", "--help"]) == 0


def test_a_drift_is_told_with_its_revisions_until_it_is_acknowledged(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "history"
    wobble = [1 + 0.01 * ((number * 7) % 5 - 2) / 2 for number in range(80)]
    ratios = [5.0 * each * 1.003 ** max(0, number - 59) for number, each in enumerate(wobble)]
    add_nights(folder, MACHINE, [night(number, measured(ratio)) for number, ratio in enumerate(ratios)])
    check = ("track", "check", "--history", str(folder))
    done = pipebench(*check)
    assert done.code == 1, done.out
    assert re.search(r"mine: slower night by night since 2026-0\d-\d\d, between r\d+ and r\d+", done.out), done.out
    assert re.search(
        r"mine on tiny.*: \+[3-6][.\d]* %, \+0\.\d+ % to \+0\.\d+ % a night, \+[3-7][.\d]* % over its best",
        done.out,
    )
    assert "track check --against r" in done.out
    event = json.loads(pipebench(*check, "--json").out)["judgement"]["events"][0]
    assert (event["kind"], event["state"]) == ("time", "open")
    assert 0.001 < event["a_night"][0] <= 0.003 <= event["a_night"][1] < 0.005
    page = tmp_path / "night.html"
    assert pipebench("track", "report", "--history", str(folder), "--html", str(page)).code == 0
    assert "slower night by night" in page.read_text()
    assert pipebench("track", "ack", event["identity"], "--reason", "meant", "--history", str(folder)).code == 0
    assert pipebench(*check).code == 0


def test_what_the_rule_finds_is_shown_and_the_same_again(pipebench: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "roc.md"
    roc = ("track", "roc", "--histories", "1", "--seed", "3")
    done = pipebench(*roc, "--markdown", str(page))
    assert done.code == 0, done.err
    assert "pipebench, limits x 1 *" in done.out
    assert "drift 0.3 %" in done.out
    assert "Found at CV 20 %" in page.read_text()
    first, second = (json.loads(pipebench(*roc, "--json").out) for _ in range(2))
    assert first == second
    assert {each["cv"] for each in first["found"]} == {0.025, 0.06, 0.2}


def test_a_python_without_the_other_tool_is_said(pipebench: CommandLine) -> None:
    done = pipebench("track", "roc", "--histories", "1", "--asv", sys.executable)
    assert done.code == 2, done.err
    assert "does not run asv" in done.err
    assert "pip install asv" in done.err
