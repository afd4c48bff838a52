"""What is passed on and what is left behind: packs and reports, terminals, drafts, workers."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace

from pipebench.bench.store import Store
from pipebench.domain.profile import Provenance
from tests.attacks.stores import stranger_row, stranger_store
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
from tests.cli.command_line import CommandLine

SCRIPT = "/home/alice/secret project/mine.py"
COMMAND = "cmd:/opt/alice/search --token=hunter2 'a,b'"
PRINTED = "alice's password is swordfish"
PRIVATE = ("alice", "hunter2", "swordfish", "secret project")


@pytest.fixture
def private_store(tmp_path: Path) -> Path:
    """Rows with all that is not to be passed on, and a problem that was read from a file of alice."""
    folder = tmp_path / "alice"
    failed = f"cmd:/opt/alice/search --token=hunter2 'a,b' failed with exit code 3: {PRINTED}"
    rows = [
        stranger_row(1, SCRIPT, "script", output=PRINTED, notices=(f"read from '{SCRIPT}'",)),
        stranger_row(2, COMMAND, status="crashed", reason=failed),
        stranger_row(3, COMMAND.replace("hunter2", "hunter2x"), status="crashed", reason="failed"),
        stranger_row(4, "cmd:./here", reason="file:///home/alice/x and /home/alice/y.json:3, 3 samples/s"),
        stored(5),
    ]
    store = Store.open(folder)
    origin = Provenance(profiler="analytic[calibrate=/home/alice/m.json]", notes=("/home/alice/m.json: as it is",))
    problem = replace(PROBLEM, profile=replace(PROBLEM.profile, provenance=origin))
    for row in rows:
        store.append(row, problem, PLAN, SCHEDULE)
    return folder


def contents(file: Path) -> str:
    """All texts in a packed store."""
    with zipfile.ZipFile(file) as opened:
        return "\n".join(opened.read(name).decode() for name in opened.namelist())


def test_a_pack_keeps_paths_command_lines_and_output_here(
    pipebench: CommandLine, private_store: Path, tmp_path: Path
) -> None:
    target = tmp_path / "results.zip"
    done = pipebench("pack", str(private_store), "-o", str(target))
    assert done.code == 0
    text = contents(target)
    assert not [word for word in PRIVATE if word in text]
    shown = {json.loads(line)["planner"] for line in text.splitlines() if line.startswith('{"key"')}
    assert shown == {"…/mine.py", "cmd:…/search …", "cmd:…/search … (2)", "cmd:./here", "mine[depth=2]"}
    assert "3 samples/s" in text
    assert "--with-output" in done.err


def test_a_packed_store_still_reads_as_one(pipebench: CommandLine, private_store: Path, tmp_path: Path) -> None:
    """Every row and its plan are there; what was left out is not run again, whoever trusts it."""
    target = tmp_path / "results.zip"
    pipebench("pack", str(private_store), "-o", str(target))
    shown = json.loads(pipebench("show", str(target), "--json").out)["rows"]
    assert len(shown) == 5
    assert len({row["key"] for row in shown}) == 5
    assert pipebench("show", str(target), "--plan", shown[0]["plan_id"][:12]).code == 0
    done = pipebench("rerun", str(target), "--row", shown[1]["key"], "--trust")
    assert done.code == 5
    assert "left out when the store was packed" in " ".join(done.out.split())


def test_with_output_is_listed_first(pipebench: CommandLine, private_store: Path, tmp_path: Path) -> None:
    target = tmp_path / "results.zip"
    done = pipebench("pack", str(private_store), "-o", str(target), "--with-output")
    assert all(word in contents(target) for word in PRIVATE)
    for thing in (f"the command line {COMMAND}", f"the path {SCRIPT}", PRINTED, "/home/alice/m.json"):
        assert f"{target} has " in done.err
        assert thing in done.err


@pytest.mark.parametrize("ending", ["html", "csv", "md"])
def test_reports_keep_them_too(pipebench: CommandLine, private_store: Path, tmp_path: Path, ending: str) -> None:
    report = tmp_path / f"report.{ending}"
    assert pipebench("report", str(private_store), "-o", str(report)).code == 0
    text = report.read_text().replace(str(tmp_path), "")
    assert not [word for word in ("hunter2", "swordfish", "secret project", "home/alice", "opt/") if word in text]
    assert "…/mine.py" in text
    done = pipebench("report", str(private_store), "-o", str(report), "--with-output")
    assert "hunter2" in report.read_text()
    assert f"the command line {COMMAND}" in done.err


def test_notebooks_keep_them_too() -> None:
    from pipebench.report.notebook import Comparison

    rows = Comparison([stranger_row(1, SCRIPT).row, stranger_row(2, COMMAND).row])
    assert not [word for word in PRIVATE if word in rows._repr_html_()]
    assert "hunter2" in rows.html(with_output=True)


def test_the_page_of_a_comparison_keeps_them_too(pipebench: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("def plan(problem, context): raise ValueError(__file__)\n")
    words = ("compare", "--planners", f"{script},cmd:false --token=hunter2", "--models", "tiny-mmt")
    page = tmp_path / "page.html"
    pipebench(*words, "--devices", "2", "--memory", "16GB", "--mini-batch", "4", "--html", str(page))
    assert "…/mine.py" in page.read_text()
    assert not [word for word in ("hunter2", str(tmp_path)) if word in page.read_text()]


HOSTILE = "\x1b[2Jx\x1b]0;title\x07\x9b31m\x85\u202e\r"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_no_command_prints_what_a_terminal_obeys(pipebench: CommandLine, tmp_path: Path) -> None:
    rows = (
        stranger_row(1, f"cmd:{HOSTILE}", notices=(HOSTILE,), model=f"m{HOSTILE}", workload=f"{HOSTILE}=1"),
        stranger_row(2, f"uniform{HOSTILE}", "plugin", status="crashed", reason=f"because {HOSTILE}"),
    )
    store = str(stranger_store(tmp_path / "store", *rows))
    other = str(stranger_store(tmp_path / "other", rows[0]))
    report = tmp_path / "report.md"
    for words in (
        ("show", store),
        ("rerun", store),
        ("rerun", store, "--trust"),
        ("diff", store, other),
        ("pack", store, "-o", str(tmp_path / "x.zip"), "--with-output"),
        ("report", store, "-o", str(report), "--with-output"),
        ("show", store, "--plan", HOSTILE),
        ("plan", f"uniform[{HOSTILE}=1]", "--models", HOSTILE),
        ("info", HOSTILE),
    ):
        done = pipebench(*words)
        assert not OBEYED.search(done.out + done.err), words
    assert not OBEYED.search(report.read_text())
    for words in (("show", store, "--json"), ("rerun", store, "--json")):
        printed = pipebench(*words).out
        assert not OBEYED.search(printed)
        assert any(HOSTILE in row["planner"] for row in json.loads(printed)["rows"])


def test_commands_print_in_one_place() -> None:
    """The one that makes text printable: no other module of the commands writes to a terminal."""
    import pipebench.cli

    wrong = re.compile(r"click\.echo\(|click\.secho\(|(?<![\w.])print\(|[^\w]Console\(|sys\.stdout\.write")
    folder = Path(pipebench.cli.__file__).parent
    found = [file.name for file in folder.rglob("*.py") if wrong.search(file.read_text())]
    assert found == ["terminal.py"]


def dead_process() -> int:
    """The id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_drafts_of_killed_commands_are_removed(pipebench: CommandLine, tmp_path: Path) -> None:
    store = stranger_store(tmp_path / "store", stored(1))
    target, dead, alive = tmp_path / "results.zip", dead_process(), os.getpid()
    left = [tmp_path / f".results.zip.{dead}.tmp", tmp_path / f".pipebench-{dead}-0123abcd.tmp"]
    kept = [
        tmp_path / f".results.zip.{alive}.tmp",
        tmp_path / f".pipebench-{alive}-0123abcd.tmp",
        tmp_path / f".others.{dead}.tmp",
    ]
    for file in (*left, *kept):
        file.touch()
    assert pipebench("pack", str(store), "-o", str(target)).code == 0
    assert not [file.name for file in left if file.exists()]
    assert all(file.exists() for file in kept)


KILLED_PACK = """
import os, signal, sys
os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
from pipebench.cli.main import run
run(["pack", sys.argv[1], "-o", sys.argv[2]])
"""


def test_a_killed_pack_leaves_nothing_for_long(pipebench: CommandLine, tmp_path: Path) -> None:
    store = stranger_store(tmp_path / "store", stored(1))
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", KILLED_PACK, str(store), str(out / "results.zip")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(list(out.iterdir())) == 1
    assert pipebench("pack", str(store), "-o", str(out / "results.zip")).code == 0
    assert [file.name for file in out.iterdir()] == ["results.zip"]


def test_temporary_folders_of_killed_commands_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipebench.system.scratch import scratch_folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os; from pipebench.system.scratch import scratch_folder\nwith scratch_folder(): os._exit(9)"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 9
    assert len(list(tmp_path.iterdir())) == 1
    with scratch_folder() as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


SLOW = "import time\ndef plan(problem, context):\n    print('searching', flush=True)\n    time.sleep(600)\n"
ENOUGH_S = 30.0
"""Of a loaded machine. Killed workers go at once; without a watch they stayed as long as the search took."""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("jobs", "processes"), [("1", 2), ("1", 3), ("2", 7)])
def test_no_worker_outlives_a_killed_command(tmp_path: Path, jobs: str, processes: int) -> None:
    """processes: with how many processes the command is killed: at its start, or amid its searches."""
    mark = f"PIPEBENCH_MARK_{uuid4().hex}"
    (tmp_path / "slow.py").write_text(SLOW)
    words = ["--planners", "./slow.py", "--models", "tiny-mmt", "--devices", "2", "--memory", "16GB"]
    words += ["--mini-batch", "4", "--rounds", "2", "--jobs", jobs]
    command = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pipebench",
            "compare",
            *words,
            "--mini-batch",
            "4",
            "--rounds",
            "2",
            "--jobs",
            jobs,
        ],
        cwd=tmp_path,
        env=os.environ | {mark: "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_for(lambda: len(marked(mark)) >= processes, 120), "the workers did not start"
        command.kill()
        command.wait()
        assert wait_for(lambda: not marked(mark), ENOUGH_S), "workers are left"
    finally:
        for process in marked(mark):
            os.kill(process, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """The processes that have a variable in the environment that they were started with."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_for(condition: object, most_s: float) -> bool:
    """Whether it holds before that many seconds have passed."""
    assert callable(condition)
    until = time.monotonic() + most_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("columns", [24, 40, 60])
def test_names_are_whole_words_on_narrow_terminals(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    names = ("contiguous-exactly", "data-parallelly", "uniformity")  # none that would run
    rows = [stranger_row(number, name, "plugin", scheduler="1f1b") for number, name in enumerate(names)]
    store = str(stranger_store(tmp_path / "store", *rows))
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (("show", store), ("rerun", store)):
        printed = pipebench(*words).out
        table = printed.split("\n\n")[0]
        letters = [line for line in table.splitlines() if len(line.strip()) == 1]
        assert letters == []
        shown = table if columns >= 60 else re.sub(r"\n {2}", " ", printed)
        assert all(name[:10] in shown for name in names), printed
