"""Whatever a planner does to its process, it costs its own row and leaves nothing running."""

import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.bench.components import ready_planner
from pipebench.bench.searches.isolated import SearchLimits, compile_kernels, timed_search
from pipebench.bench.searches.request import TOY_S, Searcher, SearchRequest
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.domain.limits import MOST_WRITTEN_BYTES
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.bench.searches.isolation.scripts import HONEST, HOST, PROBLEM, run
from tests.builders import cluster

MEGABYTE = 10**6


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("import os; os._exit(0)", "crashed", "its process ended with exit code 0 before it returned a plan"),
        ("raise SystemExit(3)", "crashed", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "crashed", "KeyboardInterrupt"),
        ("raise ValueError('two\\nlines')", "crashed", "ValueError: two"),
        ("return None", "crashed", "returned NoneType, not a PlanResult"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "its process was killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "crashed", "its process was killed by SIGKILL"),
        ("import os; os.kill(os.getppid(), 9)", "crashed", "PermissionError"),
        ("import os; [os.write(3, b'z' * 99) or 1]; os._exit(0)", "crashed", ""),
    ],
)
def test_a_planner_that_breaks_is_a_row(tmp_path: Path, body: str, status: str, reason: str) -> None:
    row = run(tmp_path, f"def plan(problem, context):\n    {body}\n", timeout_s=20.0).row
    assert (row.status, row.simulated_s) == (status, None)
    assert reason in row.reason
    assert "\n" not in row.reason
    assert run(tmp_path, HONEST).row.status == "ok"


SOLVES = f"""{HONEST}
honest = plan


def plan(problem, context):
    import pulp

    program = pulp.LpProblem("program", pulp.LpMaximize)
    program += pulp.LpVariable("x", 0, 7)
    program.solve(pulp.HiGHS(msg=False, threads=3))
    if pulp.LpStatus[program.status] != "Optimal":
        raise ValueError(pulp.LpStatus[program.status])
    return honest(problem, context)
"""


def test_a_planner_runs_its_solver_on_as_many_threads_as_it_likes(tmp_path: Path) -> None:
    """HiGHS keeps to the threads that it had at first in a process, and the suite runs it before a planner."""
    row = run(tmp_path, SOLVES).row
    assert (row.status, row.reason) == ("ok", "")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def plan(problem, context):\n    return {}['key']\n", "KeyError: 'key' (stranger.py, line 2)"),
        ("def plan(problem, context):\n    import json\n    json.loads('')\n", "(stranger.py, line 3)"),
        ("def plan(problem, context):\n    context.plan(3, problem)\n", "(stranger.py, line 2)"),
        ("1 / 0\ndef plan(problem, context): ...\n", "ZeroDivisionError: division by zero (stranger.py, line 1)"),
        ("import no_such_module\nplan = 1\n", "No module named 'no_such_module' (stranger.py, line 1)"),
        ("\ndef plan(problem, context)\n", "SyntaxError: expected ':' (stranger.py, line 2)"),
    ],
)
def test_a_crash_has_its_line_once_and_its_traceback(tmp_path: Path, source: str, reason: str) -> None:
    row = run(tmp_path, source).row
    assert row.status == "crashed"
    assert row.reason.endswith(reason)
    assert row.reason.count("stranger.py") == 1
    assert str(tmp_path) not in row.reason
    assert f'{tmp_path}/stranger.py", line ' in row.output


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("import time; time.sleep(60)", marks=pytest.mark.nightly),
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        pytest.param("while True: print('x' * 10000)", marks=pytest.mark.nightly),
        "while True: pass",
    ],
)
def test_a_planner_that_never_ends_is_killed_in_time(tmp_path: Path, body: str) -> None:
    run(tmp_path, HONEST)
    began = time.monotonic()
    row = run(tmp_path, f"def plan(problem, context):\n    {body}\n", timeout_s=0.3).row
    assert (row.status, row.reason) == ("timeout", "no plan within 0.3 s")
    assert time.monotonic() - began < 20  # toy problems take up to a second of CPU before
    assert len(row.output) <= 4096


BURNS_ON_TOYS = f"""{HONEST}
import time

honest, used_s = plan, 0.0


def plan(problem, context):
    global used_s
    if problem.cluster.name == "toy":
        began_s = time.process_time()
        try:
            while True:
                pass
        finally:
            used_s += time.process_time() - began_s
    context.count("toy_ms", round(1000 * used_s))
    return honest(problem, context)
"""


@pytest.mark.parametrize(("given", "least_ms", "most_ms"), [({}, 900, 3000), ({"toy_s": 0.2}, 150, 800)])
def test_toy_problems_take_no_longer_than_they_may(
    tmp_path: Path, given: dict[str, float], least_ms: int, most_ms: int
) -> None:
    row = run(tmp_path, BURNS_ON_TOYS, **given).row
    assert row.status == "ok"
    assert row.counters is not None
    assert least_ms <= row.counters["toy_ms"] <= most_ms


def test_kernels_are_compiled_by_toy_problems_for_as_long_as_any_may_take(tmp_path: Path) -> None:
    script = tmp_path / "stranger.py"
    script.write_text(BURNS_ON_TOYS)
    began_s = time.monotonic()
    compile_kernels(
        HOST,
        ready_planner(HOST, parse_reference(str(script))),
        Searcher(planner=str(script), regime="sync", toy_s=0.1),
    )
    assert time.monotonic() - began_s > TOY_S


def test_what_still_runs_at_the_deadline_does_not_hide_it(tmp_path: Path) -> None:
    source = """
import subprocess
from pipebench.hooks.context import DeadlineReached

def plan(problem, context):
    subprocess.Popen(["sleep", "20"])
    raise DeadlineReached("no plan in time")
"""
    row = run(tmp_path, source, timeout_s=20.0).row
    assert row.status == "timeout"
    assert row.reason.startswith("it gave up after ")
    assert row.reason.endswith(" s of 20 s: no plan in time")


WRITING = """#!{python}
import json, sys
names = [each["name"] for each in json.load(sys.stdin)["content"]["profile"]["graph"]["operators"]]
with open("large", "wb") as file:
    file.seek({size} - 1)
    file.write(b"0")
stage = {{"operators": names, "devices": [0], "micro_batch": 1}}
print(json.dumps({{"pipebench": "bare-plan", "version": 1, "content": {{"stages": [stage]}}}}))
"""


@pytest.mark.parametrize(("more", "status"), [(0, "ok"), (1, "crashed")])
def test_a_program_in_its_cage_writes_no_larger_file_than_the_limit(
    tmp_path: Path, more: int, status: str
) -> None:
    file = tmp_path / "writing"
    file.write_text(WRITING.format(python=sys.executable, size=MOST_WRITTEN_BYTES + more))
    file.chmod(0o755)
    ready = ready_planner(HOST, parse_reference(f"cmd:{file}"))
    problem = replace(PROBLEM, cluster=cluster(2, memory=10**6))
    row = run_trial(HOST, Trial(workload=workload(problem), regime="sync", planner=ready, timeout_s=20.0)).row
    assert row.status == status, row.reason
    assert ("File too large" in row.reason) == bool(more)


SLOW_TO_FIT = """
import time
from pipebench.domain.errors import InfeasibleProblem

def plan(problem, context):
    if problem.cluster.memory_bytes in (1000, 10**9):  # as it is given, and of the toy problems
        raise InfeasibleProblem("no plan fits")
    time.sleep(60)
"""


def test_the_search_for_memory_that_would_do_ends_with_the_search(tmp_path: Path) -> None:
    run(tmp_path, HONEST)
    began = time.monotonic()
    row = run(tmp_path, SLOW_TO_FIT, timeout_s=0.5).row
    assert row.status == "infeasible"
    assert time.monotonic() - began < 0.5 + 1.9  # a second of grace, once


def test_memory_is_limited(tmp_path: Path) -> None:
    hungry = "def plan(problem, context):\n    held = []\n    while True: held.append(bytearray(10**7))\n"
    row = run(tmp_path, hungry, memory_bytes=200 * MEGABYTE, timeout_s=20.0).row
    assert row.status == "memory"
    assert row.search_peak_bytes is not None
    assert row.search_peak_bytes < 500 * MEGABYTE


GRANDCHILDREN = """
import os, subprocess, time

def plan(problem, context):
    subprocess.Popen(["sleep", "{length}"])
    subprocess.Popen(["setsid", "sleep", "{length}"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "{length}"])
        os._exit(0)
    time.sleep(0.2)
    {end}
"""


@pytest.mark.parametrize(
    ("end", "length"), [("os._exit(0)", "985"), ("time.sleep(60)", "986"), ("return None", "987")]
)
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux hands orphans to the fork server")
def test_nothing_is_left_behind(tmp_path: Path, end: str, length: str) -> None:
    run(tmp_path, GRANDCHILDREN.replace("{end}", end).replace("{length}", length), timeout_s=0.5)
    assert sleepers(length) == []


def sleepers(length: str) -> list[str]:
    """Processes that were started as `sleep` of so many seconds: tests beside this one have others."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        found += [entry.name] if length.encode() in words else []
    return found


def test_the_first_plan_counts_when_time_runs_out_in_a_repeat(tmp_path: Path) -> None:
    waits = "    import time; time.sleep(0.3)\n    context.count"
    row = run(tmp_path, HONEST.replace("    context.count", waits), timeout_s=0.5).row
    assert row.status == "ok"
    assert row.search_samples == ()
    assert "search time is of the first search: it ran once" in row.notices


def test_what_is_printed_is_kept_and_shown_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    noisy = HONEST.replace("    context.count", "    print('look'); os.write(2, b'at me')\n    context.count")
    row = run(tmp_path, f"import os\n{noisy}", repeat=1).row
    assert (row.status, row.output.count("look"), row.output.count("at me")) == ("ok", 1, 1)
    assert capfd.readouterr() == ("", "")


def test_a_planner_works_in_an_empty_folder_and_sees_the_variables_that_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MY_SETTING", "CI_TOKEN"):
        monkeypatch.setenv(name, "12")
    monkeypatch.setenv("PIPEBENCH_VARIABLES", "MY_*")
    checks = (
        "    import os; assert os.listdir() == [] and os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR']\n"
        "    assert os.environ['MY_SETTING'] == '12' and 'CI_TOKEN' not in os.environ\n"
        "    open('mine', 'w').write('x')\n    context.count"
    )
    row = run(tmp_path, HONEST.replace("    context.count", checks), repeat=2).row
    assert row.status == "ok", row.reason
    assert len(row.search_samples) == 2


def test_one_search_changes_nothing_for_the_next(tmp_path: Path) -> None:
    spoiler = (
        "import pipebench.domain.plan as p\ndef plan(problem, context):\n    p.Plan = None\n    p.Stage = None\n"
    )
    run(tmp_path, spoiler)
    assert run(tmp_path, HONEST).row.status == "ok"


def test_search_times_come_in_samples_beside_calibrations(tmp_path: Path) -> None:
    row = run(tmp_path, HONEST, repeat=3).row
    assert len(row.search_samples) == 3
    assert row.search_cpu_s == sorted(cpu for cpu, _ in row.search_samples)[1]
    assert set(row.search_ratio) == {"interpreter", "numpy", "solver"}
    assert all(0 < ratio < 10 for ratio in row.search_ratio.values())
    assert row.counters == {"stages": 2}


def test_the_first_search_waits_for_no_calibration(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(HONEST)
    planner = ready_planner(HOST, parse_reference(str(script)))
    searcher = Searcher(planner=planner.label, regime="sync")
    done = timed_search(HOST, planner, searcher, SearchRequest(problem=PROBLEM), SearchLimits(timeout_s=20.0))
    assert done.first.calibration_cpu_s == {}
    assert all(sample.calibration_cpu_s for sample in done.samples)


def test_a_report_counts_only_where_nothing_but_frames_came(tmp_path: Path) -> None:
    babbling = HONEST.replace(
        "def plan(problem, context):\n",
        "def plan(problem, context):\n"
        "    import os\n"
        "    from pipebench.bench.searches.isolation.child import Channel\n"
        "    honest = Channel.send\n"
        "    Channel.send = lambda self, report: (honest(self, report), os.write(self._reports, b'\\xff' * 8))\n",
    )
    row = run(tmp_path, babbling).row
    assert (row.status, row.plan_id) == ("crashed", None)
    assert row.reason.startswith("its process sent a frame of 18446744073709551615 bytes, at most")
