"""pipebench compare, as a user runs it."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.searches.isolation.client import isolation
from pipebench.domain.row import Row
from tests.cli.command_line import CommandLine
from tests.shared_data import shared_data

SMALL = (
    "--profile",
    "resnet50",
    "--devices",
    "4",
    "--memory",
    "12GB",
    "--bandwidth",
    "12GB/s",
    "--mini-batch",
    "16",
    "--regime",
    "sync",
)


def rows_of(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def test_json_rows_have_the_fields_of_the_row(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "madpipe,graphpipe,uniform", *SMALL[:-2], "--json")
    assert done.code == 0, done.err
    rows = rows_of(done.out)
    assert [row["planner"] for row in rows] == [name for name in ("madpipe", "graphpipe", "uniform") for _ in "12"]
    assert [row["regime"] for row in rows] == ["sync", "async"] * 3
    assert [row["adapted"] for row in rows] == [True, False, False, True, False, False]
    for row in rows:
        assert set(row) == set(Row.__struct_fields__)
        assert row["status"] == "ok"
        assert row["verdict"] == "valid"
        assert row["bound_s"] <= row["simulated_s"]
        assert row["gap"] == pytest.approx(row["simulated_s"] / row["bound_s"] - 1)
        assert row["throughput"] == pytest.approx(16 / row["simulated_s"])
        assert row["memory_bytes"] == max(row["peak_memory_bytes"].values()) <= 12_000_000_000
        assert row["search_cpu_s"] > 0
        assert row["environment"]["numpy"]
    assert {row["regime"] for row in rows} == {"sync", "async"}
    assert len({row["workload_id"] for row in rows}) == 1


MINE = """
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    graph = problem.profile.graph
    names = tuple(graph.operators[i].name for i in graph.topological)
    half = len(names) // 2
    stages = [Stage(operators=part, devices=(i,), micro_batch=1)
              for i, part in enumerate((names[:half], names[half:]))]
    return Plan(stages=tuple(stages))
"""

PROGRAM = """
import json, sys
problem = json.load(sys.stdin)["content"]
names = [operator["name"] for operator in problem["profile"]["graph"]["operators"]]
stage = {"operators": names, "devices": [0], "micro_batch": 1, "in_flight": 1}
json.dump({"pipebench": "bare-plan", "version": 1, "content": {"stages": [stage]}}, sys.stdout)
"""


def test_a_script_and_a_program_stand_beside_the_others(pipebench: CommandLine, tmp_path: Path) -> None:
    script, program = tmp_path / "mine.py", tmp_path / "program.py"
    script.write_text(MINE)
    program.write_text(PROGRAM)
    planners = f"{script},cmd:{sys.executable} {program},data-parallel"
    done = pipebench("compare", "--planners", planners, *SMALL, "--json")
    assert done.code == 0, done.err + done.out
    mine, other, shipped = rows_of(done.out)
    assert (mine["status"], mine["stages"]) == ("ok", 2)
    assert (other["status"], other["stages"]) == ("ok", 1)
    assert shipped["planner"] == "data-parallel"
    assert other["simulated_s"] > mine["simulated_s"]


def test_commas_in_quotes_belong_to_the_command(pipebench: CommandLine, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("problem =", "assert sys.argv[1:] == ['a,[b']; problem ="))
    done = pipebench("compare", "--planners", f"cmd:{sys.executable} {program} 'a,[b',uniform", *SMALL, "--json")
    assert done.code == 0, done.err + done.out
    assert [row["planner"] for row in rows_of(done.out)] == [f"cmd:{sys.executable} {program} 'a,[b'", "uniform"]
    assert "next comma outside quotes" in " ".join(pipebench("compare", "--help").out.split())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's handler, which is not there when the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


SEARCHING = """
import pathlib, tempfile, time

def plan(problem, context):
    (pathlib.Path(tempfile.gettempdir()) / "searching").touch()
    time.sleep(60)
"""
"""A planner that cannot signal anyone: it says that it runs in the one folder that it may write in."""


@pytest.fixture
def interrupter(interruptible: None) -> Iterator[threading.Thread]:
    """Ctrl-C as soon as SEARCHING runs in a search of this process."""
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.01):
            if (isolation().folders.own / "searching").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    yield thread
    ended.set()
    thread.join()


@pytest.mark.parametrize(("planners", "finished"), [("uniform,{script}", 1), ("{script},uniform", 0)])
@pytest.mark.parametrize("flag", [(), ("--json",)])
def test_an_interrupt_keeps_the_rows_that_are_finished(
    pipebench: CommandLine,
    tmp_path: Path,
    interrupter: threading.Thread,
    planners: str,
    finished: int,
    flag: tuple[str, ...],
) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SEARCHING)
    done = pipebench("compare", "--planners", planners.format(script=script), *SMALL, *flag)
    assert not interrupter.is_alive()
    assert done.code == 130
    *late, line = done.err.strip().splitlines()
    assert all(each.startswith("running ") for each in late), done.err
    assert line.startswith("pipebench: interrupted")
    if flag:
        assert [row["planner"] for row in rows_of(done.out)] == ["uniform"] * finished
    elif not finished:
        assert done.out == ""
    else:
        assert "uniform" in done.out


def test_a_script_that_leaves_costs_its_own_row(pipebench: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import sys\ndef plan(problem, context):\n    sys.exit(3)\n")
    done = pipebench("compare", "--planners", f"{script},uniform", *SMALL, "--json")
    assert done.code == 5
    assert [row["status"] for row in rows_of(done.out)] == ["crashed", "ok"]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("import sys; print('cannot', file=sys.stderr); sys.exit(10)", "infeasible", "cannot"),
        ("import sys; print('dags', file=sys.stderr); sys.exit(11)", "unsupported", "dags"),
        ("import sys; sys.exit(3)", "crashed", "exit code 3"),
        ("print('not json')", "crashed", "not valid JSON"),
        ("import time; time.sleep(60)", "timeout", "no plan within 1 s"),
    ],
)
def test_a_program_that_fails_costs_its_own_row(
    pipebench: CommandLine, tmp_path: Path, body: str, status: str, reason: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(body)
    done = pipebench(
        "compare", "--planners", f"cmd:{sys.executable} {program}", *SMALL, "--json", "--timeout", "1"
    )
    assert done.code == 5
    (row,) = rows_of(done.out)
    assert row["status"] == status
    assert reason in row["reason"]


def test_a_plan_made_elsewhere_is_scored_like_the_others(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    assert pipebench("plan", "madpipe", *SMALL, "-o", str(file)).code == 0
    done = pipebench("compare", "--planners", "madpipe", "--plans", str(file), *SMALL, "--json")
    assert done.code == 0, done.err
    planned, elsewhere = rows_of(done.out)
    for field in ("simulated_s", "plan_id", "schedule_id", "memory_bytes", "bound_s"):
        assert planned[field] == elsewhere[field]
    assert elsewhere["planner"] == "p.json"


def test_memory_too_small_for_any_plan_is_a_row_that_says_what_would_do(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "madpipe,graphpipe", *SMALL, "--memory", "100MB", "--json")
    assert done.code == 5
    for row in rows_of(done.out):
        assert row["status"] == "infeasible"
        assert row["bound_memory_bytes"] > 100_000_000
        said = [words for words in ("it has a plan", "bytes would do") if words in row["reason"]]
        assert len(said) == (not row["adapted"])
        assert row["adapted"] or row["smallest_memory_bytes"] >= row["bound_memory_bytes"]


def test_the_heading_says_which_model(pipebench: CommandLine) -> None:
    done = pipebench("compare", "--planners", "uniform", "--models", "mmt[branches=2,layers=2]", "--devices", "2")
    assert done.out.startswith("mmt[branches=2,layers=2] on 2 x V100 16 GB")


def test_out_keeps_rows_and_plans(pipebench: CommandLine, tmp_path: Path) -> None:
    folder, plan = tmp_path / "results", tmp_path / "plan.json"
    compare = ("compare", "--planners", "data-parallel", *SMALL, "--out", str(folder), "--json")
    (row,) = rows_of(pipebench(*compare).out)
    assert pipebench("show", str(folder)).out.count("data-parallel") == 1
    assert pipebench("show", str(folder), "--plan", row["plan_id"][:10], "-o", str(plan)).code == 0
    assert pipebench("validate", str(plan)).out.startswith("valid")
    done = pipebench("show", str(folder), "--plan", "zzz")
    assert (done.code, row["plan_id"][:12] in done.err) == (2, True)


@pytest.mark.nightly
def test_a_measured_profile_of_another_system(pipebench: CommandLine) -> None:
    profile = shared_data("pipedream/resnet50.txt")
    planners = "data-parallel,uniform,contiguous-exact,pipedream,madpipe,graphpipe"
    options = ("--devices", "4", "--memory", "16GB", "--bandwidth", "12GB/s")
    done = pipebench("compare", "--planners", planners, "--profile", str(profile), *options, "--json")
    rows = {row["planner"]: row for row in rows_of(done.out)}
    assert set(rows) == set(planners.split(","))
    ok = [row for row in rows.values() if row["status"] == "ok"]
    assert {"contiguous-exact", "pipedream", "madpipe", "graphpipe"} <= {row["planner"] for row in ok}
    assert all(row["gap"] >= 0 for row in ok)
    assert rows["madpipe"]["simulated_s"] <= rows["contiguous-exact"]["simulated_s"]


def test_a_size_that_was_not_profiled_is_said_on_every_row_that_runs_with_it(pipebench: CommandLine) -> None:
    profile = shared_data("pipedream/gnmt.txt")
    options = ("--devices", "4", "--memory", "16GB", "--bandwidth", "10GB/s", "--mini-batch", "256", "--json")
    done = pipebench("compare", "--planners", "pipedream,contiguous-exact", "--profile", str(profile), *options)
    for row in rows_of(done.out):
        proportional = any("was not profiled (only 32)" in notice for notice in row["notices"])
        only = any("the only one that was profiled" in notice for notice in row["notices"])
        if row["planner"] in ("pipedream", "contiguous-exact"):
            assert (proportional, only) == (row["regime"] == "sync", row["regime"] == "async")


@pytest.mark.parametrize(
    ("typed", "placement"),
    [
        (("zb-v", "--vpp", "2"), "v"),
        (("interleaved-1f1b", "--vpp", "2"), "in-turn"),
        (("chimera",), "mirrored"),
        (("chimera", "--pp", "4"), "mirrored"),
    ],
)
def test_a_planner_places_stages_as_the_scheduler_takes_them(
    pipebench: CommandLine, tmp_path: Path, typed: tuple[str, ...], placement: str
) -> None:
    workload = ("--profile", "bert-cpu", "--devices", "4", "--memory", "64GB", "--mini-batch", "32")
    folder, plan = str(tmp_path / "results"), tmp_path / "plan.json"
    command = ("compare", "--planners", "layout", "--schedulers", *typed, *workload, "--regime", "sync")
    (row,) = rows_of(pipebench(*command, "--out", folder, "--json").out)
    assert (row["status"], row["verdict"], row["scheduler"]) == ("ok", "valid", typed[0]), row["reason"]
    assert pipebench("show", folder, "--plan", row["plan_id"], "-o", str(plan)).code == 0
    assert pipebench("validate", str(plan)).out.startswith("valid")
    assert json.loads(plan.read_text())["content"]["plan"]["placement"] == placement


def test_a_scheduler_with_a_flush_in_async_says_so_and_is_named_where_it_fails(pipebench: CommandLine) -> None:
    workload = ("--profile", "resnet50", "--devices", "4", "--memory", "12GB", "--regime", "async")
    command = ("compare", "--planners", "uniform", *workload, "--schedulers")
    (row, *_) = rows_of(pipebench(*command, "1f1b", "--json").out)
    assert row["status"] == "ok"
    assert any("a flush in the async regime" in notice for notice in row["notices"])
    failed = pipebench(*command, "gpipe").out
    assert "  uniform x gpipe: device 0 needs" in failed
    assert "a flush in the async regime" in " ".join(failed.split())


def test_a_planner_that_knows_one_placement_says_what_to_type(pipebench: CommandLine) -> None:
    workload = ("--profile", "bert-cpu", "--devices", "4", "--memory", "64GB", "--mini-batch", "32")
    command = ("compare", "--planners", "uniform", "--schedulers", "zb-v", *workload, "--regime", "sync", "--json")
    (row,) = rows_of(pipebench(*command).out)
    assert row["status"] == "unsupported"
    assert "zb-v takes the placement v; this plan has apart" in row["reason"]
    assert "type --vpp 2" in row["reason"]


def test_json_changes_nothing_in_the_store_and_on_the_page(pipebench: CommandLine, tmp_path: Path) -> None:
    compare = ("compare", "--planners", "uniform", *SMALL)
    for name, more in (("plain", ()), ("json", ("--json",))):
        kept = ("--out", str(tmp_path / name), "--html", str(tmp_path / f"{name}.html"))
        done = pipebench(*compare, *kept, *more)
        assert done.code == 0, done.err
    assert [row["planner"] for row in rows_of(done.out)] == ["uniform"]
    stored = [rows_of(pipebench("show", str(tmp_path / name), "--json").out) for name in ("plain", "json")]
    for rows in stored:
        assert [(row["planner"], row["yardstick"]) for row in rows] == [
            ("uniform", False),
            ("data-parallel", True),
        ]
    assert pipebench("diff", str(tmp_path / "plain"), str(tmp_path / "json")).code == 0
    assert "data-parallel †" in (tmp_path / "json.html").read_text()
    again = json.loads(pipebench(*compare, "--out", str(tmp_path / "plain"), "--json").out)
    assert again["cached"] == [again["rows"][0]["key"]]


def test_the_yardstick_stands_beside_and_counts_in_nothing(pipebench: CommandLine) -> None:
    """Data parallelism does not fit: the exit code is that of those who are compared."""
    small = (
        "--profile",
        "resnet50",
        "--devices",
        "2",
        "--mini-batch",
        "8",
        "--memory",
        "1.5GB",
        "--regime",
        "async",
    )
    done = pipebench("compare", "--planners", "uniform", *small)
    beside = [line for line in done.out.splitlines() if line.startswith("data-parallel †")]
    assert len(beside) == 1
    named = pipebench("compare", "--planners", "uniform,data-parallel", *small)
    assert "†" not in named.out
    rows = rows_of(pipebench("compare", "--planners", "uniform", *small, "--json").out)
    assert {row["planner"] for row in rows} == {"uniform"}
    assert "infeasible" in beside[0]
    assert (done.code, named.code) == (0, 5)
