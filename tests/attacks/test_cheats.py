"""Planners that cheat, beside two honest ones: each is credited with what it spent and scored as it is, or fails.

The planners stand in `cheats/`; each says what it tries. All of them do the same work, so what the honest one is
credited with is what each of them owes. Where times are compared, the command runs in a process of its own.
"""

import json
import math
import os
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import pipebench
from pipebench.bench.searches.isolation.clock import witness
from pipebench.bench.searches.isolation.confinement import can_leave_network, can_refuse_calls, landlock_version
from tests.attacks.cheats.real_work import grind
from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install
from tests.nightly import mostly_at_night

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere times are marked `unwitnessed`")

SOURCES = Path(__file__).parent / "cheats"
WORKLOAD = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
BUSY, BUSY_TOO, QUICK = "honest_busy", "honest_busy_too", "honest_quick"
QUALITY = (
    "status",
    "plan_id",
    "schedule_id",
    "simulated_s",
    "estimated_s",
    "bound_s",
    "gap",
    "throughput",
    "bubble",
    "memory_bytes",
    "counters",
    "claimed_s",
)
SCORE = ("simulated_s", "estimated_s", "bound_s", "gap", "throughput", "bubble", "memory_bytes")
OWED = 0.9
TRIES = 8
"""A cheat hides its work every time. On a busy machine the same work takes half as long again now and then,
for some seconds at a time: three tries were once not enough for an honest amount of work."""

CLOCKS = (
    "clocks_replaced",
    "monotonic_replaced",
    "suite_clock_replaced",
    "compile_events_forged",
    "encode_patched",
    "report_forged",
    "waits_patched",
    "settles_after_the_clock",
    "profile_hook",
    "trace_hook",
    "collector_hook",
    "scheduler_tricks",
    "after_the_answer",
)
MEMORIES = (
    "memo_module",
    "memo_suite",
    "memo_tmp",
    "memo_home",
    "memo_cwd",
    "memo_own_folder",
    "memo_kernel_cache",
    "memo_dev_shm",
    "memo_sysv",
    "memo_shared_memory",
    "memo_socket_daemon",
    "memo_file_times",
    "memo_limits",
    "memo_priority",
    "memo_affinity",
    "memo_keyring",
    "memo_page_faults",
)
OTHERS_WORK = (
    "fork_unwaited",
    "double_fork_daemon",
    "program_unwaited",
    "child_signal_ignored",
    "child_signal_ignored_often",
    "thread_at_import",
    "process_at_import",
    "daemon_for_the_next",
    "offload_http",
    "offload_socket_file",
)
FEW_OF_OTHERS_WORK = (
    "double_fork_daemon",
    "program_unwaited",
    "child_signal_ignored",
    "thread_at_import",
    "process_at_import",
    "offload_http",
)
"""Of those above one of each kind."""
ON_THE_SERVER = ("stops_server", "traces_server", "writes_server_memory")
OF_EACH_KIND = (
    "clocks_replaced",
    "report_forged",
    "waits_patched",
    "collector_hook",
    "after_the_answer",
    "memo_module",
    "memo_tmp",
    "memo_kernel_cache",
    "memo_shared_memory",
    "memo_socket_daemon",
    "memo_file_times",
    "memo_limits",
    "memo_affinity",
    "memo_page_faults",
    "writes_server_memory",
)
"""Of those above one for each way: a clock, a report, a wait, a hook; a module, a file, shared memory, a process,
what the system keeps of files and of processes; the server."""
IMPOSSIBLE = (
    "claims_negative",
    "claims_no_number",
    "bound_too_high",
    "bound_negative",
    "counters_negative",
    "counters_no_number",
    "judge_replaced",
)
"""What no honest planner returns: the row fails."""
BOASTS = ("claims_nanoseconds",)
"""What is told beside the score and never moves it."""


BROUGHT_ALONG = "precomputed"
"""Work before the problem is known is not the search's; the cold time shows it."""
FILES = ("tmp", "home", "cwd", "own_folder", "kernel_cache", "dev_shm", "shared_memory")
MARKS = (
    "memo_limits",
    "memo_priority",
    "memo_affinity",
    "memo_keyring",
    "memo_sysv",
    "offload_http",
    "offload_socket_file",
)


def permitted(cheats: Sequence[str]) -> tuple[str, ...]:
    """Those cheats against which the kernel of this machine offers the means. SECURITY.md tells of the others."""
    impossible: set[str] = set()
    impossible |= set() if landlock_version() else {f"memo_{place}" for place in FILES} | {*ON_THE_SERVER}
    impossible |= set() if landlock_version() >= 6 else {"stops_server"}
    impossible |= set() if can_refuse_calls() else {*MARKS}
    impossible |= set() if can_leave_network() else {"memo_file_times", "memo_page_faults"}
    impossible |= set() if witness() == "perf" else {"child_signal_ignored", "child_signal_ignored_often"}
    return tuple(name for name in cheats if name not in impossible)


class Comparison:
    """What one `pipebench compare --json` gave: rows by the planner's plain name."""

    def __init__(self, code: int, printed: str, errors: str) -> None:
        assert code in (0, 5), errors
        self.rows: dict[str, dict[str, Any]] = {}
        for row in json.loads(printed)["rows"]:
            self.rows[Path(row["planner"]).stem] = row

    def failed(self, name: str) -> bool:
        """Whether a row fails, with a reason that a user can read."""
        row = self.rows[name]
        return row["status"] != "ok" and bool(row["reason"])

    def credit_s(self, name: str) -> float:
        """The CPU seconds that a row puts down to a search."""
        seconds: float = self.rows[name]["search_cpu_s"]
        return seconds


def words(planners: Sequence[str], *more: str) -> list[str]:
    """Of a comparison, in the folder of the planners."""
    listed = ",".join(name if "-" in name else f"./{name}.py" for name in planners)
    return ["compare", "--planners", listed, *WORKLOAD, "--regime", "sync", "--json", "--timeout", "20", *more]


def compare(folder: Path, planners: Sequence[str], *more: str) -> Comparison:
    """Run the command as a user does, in the folder of the planners."""
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "pipebench", *words(planners, *more)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Comparison(done.returncode, done.stdout, done.stderr)


Compare = Callable[..., Comparison]


@pytest.fixture
def compare_here(folder: Path, pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """The same in this process, which has imported what a comparison needs."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)

    def compare(planners: Sequence[str], *more: str) -> Comparison:
        done = pipebench(*words(planners, *more))
        return Comparison(done.code, done.out, done.err)

    return compare


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The two honest planners beside no other."""
    return compare(copy_of_planners(tmp_path_factory.mktemp("alone")), (BUSY, QUICK))


def copy_of_planners(folder: Path) -> Path:
    copy = folder / "planners"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(copy / f"{BUSY}.py", copy / f"{BUSY_TOO}.py")
    return copy


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A copy of the planners: some of them write beside their source. What they leave elsewhere is removed."""
    yield copy_of_planners(tmp_path)
    kernels = Path(pipebench.__file__).parent / "algorithms" / "__pycache__"
    caches = (Path.home() / ".cache", kernels, *(os.environ.get(name) for name in ("NUMBA_CACHE_DIR",)))
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", *filter(None, caches)):
        for file in Path(place).glob("pipebench-cheat-*"):
            file.unlink(missing_ok=True)


@pytest.fixture
def accomplice(folder: Path) -> Iterator[None]:
    """A process of this machine that searches for others, behind a port and behind a socket in the folder."""

    class OfPort(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = str(grind(int(self.path[1:]))).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    class OfFile(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(str(grind(int(self.rfile.readline()))).encode())

    os.chdir(folder)
    servers = (
        ThreadingHTTPServer(("127.0.0.1", 0), OfPort),
        socketserver.ThreadingUnixStreamServer("socket", OfFile),
    )
    (folder / "port").write_text(str(servers[0].server_address[1]))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    for server in servers:
        server.shutdown()
        server.server_close()


def unpaid(folder: Path, cheats: Sequence[str], first: Comparison | None = None) -> dict[str, str]:
    """The cheats that get away with less than they owe, and what each was credited with.

    first: a comparison that has been made. A cheat under suspicion is run again, beside the honest ones, and gets
    away only if the most that it was ever credited with is less than the least of an honest one.
    """
    suspects, owed_s = tuple(cheats), math.inf
    paid_s = dict.fromkeys(cheats, 0.0)
    for _ in range(TRIES):
        table = first or compare(folder, (BUSY, *suspects, BUSY_TOO, QUICK))
        first = None
        owed_s = min(owed_s, table.credit_s(BUSY), table.credit_s(BUSY_TOO))
        paid_s |= {name: max(paid_s[name], _paid_s(table, name)) for name in suspects}
        suspects = tuple(name for name in suspects if not paid_s[name] >= OWED * owed_s)
        if not suspects:
            break
    return {name: f"{paid_s[name]:.4f} s of {owed_s:.4f} s" for name in suspects}


def _paid_s(table: Comparison, name: str) -> float:
    """What a cheat was credited with; without limit where its row failed, or its work was never done."""
    row = table.rows[name]
    if table.failed(name) or (name == "after_the_answer" and "the work is done" not in row["output"]):
        return math.inf
    return table.credit_s(name) if row["search_cold_s"] >= 0 else 0.0


def same(found: Mapping[str, Any], alone: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """The columns that differ, each with both values."""
    return {name: (found[name], alone[name]) for name in columns if found[name] != alone[name]}


@pytest.mark.parametrize(
    "tried",
    [
        pytest.param(OF_EACH_KIND, id="of each kind"),
        pytest.param((*CLOCKS, *MEMORIES, *ON_THE_SERVER), id="thirty", marks=pytest.mark.nightly),
    ],
)
def test_cheats_pay_and_two_honest_planners_do_not_notice(
    folder: Path, alone: Comparison, tried: tuple[str, ...]
) -> None:
    cheats = permitted(tried)
    assert {*OF_EACH_KIND} < {*CLOCKS, *MEMORIES, *ON_THE_SERVER}
    beside = compare(folder, (BUSY, *cheats, BUSY_TOO, QUICK))
    for name in (BUSY, QUICK):
        assert same(beside.rows[name], alone.rows[name], QUALITY) == {}
    assert 0.5 < beside.credit_s(BUSY) / alone.credit_s(BUSY) < 2
    assert unpaid(folder, cheats, beside) == {}


@pytest.mark.usefixtures("accomplice")
@pytest.mark.parametrize(
    "tried",
    [
        pytest.param(FEW_OF_OTHERS_WORK, id="one of a kind"),
        pytest.param(OTHERS_WORK, id="ten", marks=pytest.mark.nightly),
    ],
)
def test_no_cheat_leaves_its_work_to_others(folder: Path, tried: tuple[str, ...]) -> None:
    assert unpaid(folder, permitted(tried)) == {}


def test_the_cold_time_shows_what_was_done_before_the_problem(folder: Path) -> None:
    shown_s, owed_s = 0.0, math.inf
    for _ in range(TRIES):
        table = compare(folder, (BUSY, BROUGHT_ALONG))
        cold_s = math.inf if table.failed(BROUGHT_ALONG) else table.rows[BROUGHT_ALONG]["search_cold_s"]
        shown_s, owed_s = max(shown_s, cold_s), min(owed_s, table.credit_s(BUSY))
        if shown_s >= OWED * owed_s:
            break
    assert shown_s >= OWED * owed_s


def test_no_planner_claims_what_cannot_be(compare_here: Compare) -> None:
    table = compare_here((QUICK, *IMPOSSIBLE, *BOASTS))
    assert [name for name in IMPOSSIBLE if not table.failed(name)] == []
    for name in BOASTS:
        assert table.failed(name) or same(table.rows[name], table.rows[QUICK], SCORE) == {}


@pytest.mark.parametrize(
    "module", mostly_at_night(["cheat_simulator", "cheat_checks", "cheat_clocks"], ["cheat_simulator"])
)
def test_no_plugin_reaches_the_judge(folder: Path, alone: Comparison, module: str) -> None:
    install(folder, module.replace("_", "-"), (SOURCES / f"{module}.py").read_text())
    name = module.replace("_", "-")
    table = compare(folder, (BUSY, BUSY_TOO, QUICK, name))
    for honest in (BUSY, QUICK):
        assert same(table.rows[honest], alone.rows[honest], QUALITY) == {}
    assert 0.5 < table.credit_s(BUSY) / alone.credit_s(BUSY) < 2
    honest = BUSY if name == "cheat-clocks" else QUICK
    assert table.failed(name) or same(table.rows[name], alone.rows[honest], SCORE) == {}
    if name == "cheat-clocks":
        assert unpaid(folder, (name,), table) == {}


@pytest.mark.parametrize(
    "executors",
    mostly_at_night(
        ["simulate,cheat-fast", "simulate,cheat-instant", "cheat-fast"], ["simulate,cheat-fast", "cheat-fast"]
    ),
)
def test_no_executor_is_the_simulator(
    folder: Path, alone: Comparison, compare_here: Compare, executors: str
) -> None:
    install(folder, "cheat-executors", (SOURCES / "cheat_executors.py").read_text())
    row = compare_here((QUICK,), "--executors", executors).rows[QUICK]
    honest = alone.rows[QUICK]
    assert row["status"] != "ok" or row["simulated_s"] is None or same(row, honest, SCORE) == {}


def test_no_planner_edits_the_rows_before_it(folder: Path, alone: Comparison, pipebench: CommandLine) -> None:
    """In a process of its own, whose command line says where the store is."""
    done = compare(folder, (QUICK, "edits_rows"), "--out", "store")
    assert done.rows[QUICK]["simulated_s"] == alone.rows[QUICK]["simulated_s"]
    shown = pipebench("show", str(folder / "store"), "--json")
    if shown.code == 0:
        told = [row for row in json.loads(shown.out)["rows"] if Path(row["planner"]).stem == QUICK]
        assert [row["simulated_s"] for row in told] == [
            alone.rows[QUICK]["simulated_s"]
        ] or "rows.jsonl" in shown.err
    else:
        assert "rows.jsonl" in shown.err
