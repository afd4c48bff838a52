"""Hooks outside the cage: whatever a plugin's code does costs its own row or its command, with a reason.

A third-party package is made in a folder on the import path. Each command runs in a process of its own, as a user
runs it, in one test or more; in the others it runs in this process, which is the same to a plugin: its code has a
process of its own in either case.
"""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.searches.isolation.confinement import can_leave_network, landlock_version
from pipebench.cli.main import run
from pipebench.system.kernel_folder import kernel_folder
from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install
from tests.nightly import mostly_at_night

HEAD = """
import os
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Executor, Format, Model, Planner, Profiler, Scheduler

PIPEBENCH_API = 1

"""
WORKLOAD = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
COMPARED = (*WORKLOAD, "--regime", "sync", "--json")
SLOT_KINDS = {
    "executors": "Executor",
    "models": "Model",
    "profilers": "Profiler",
    "artefacts": "Artefact",
    "planners": "Planner",
    "schedulers": "Scheduler",
    "formats": "Format",
}
FAILED = 5


def offering(slot: str, body: str, fields: str = "", name: str = "evil") -> str:
    """A plugin that offers one component, whose function has that body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return (
        f"{HEAD}@hookimpl\ndef pipebench_{slot}():\n"
        f'    return [{SLOT_KINDS[slot]}(name="{name}", summary="s", load="{{module}}:work"{fields})]\n\n'
        f"def work(*arguments):\n{lines}\n"
    )


class Command:
    """Runs the command in an empty folder, with what is installed in another one."""

    def __init__(self, folder: Path) -> None:
        self.installed, self.here = folder / "installed", folder / "here"
        self.installed.mkdir()
        self.here.mkdir()

    def install(self, source: str, name: str = "evil-one") -> None:
        install(self.installed, name, source)

    def __call__(self, *typed: str, **more: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([str(self.installed), *filter(None, sys.path)])
        environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | more
        return subprocess.run(
            [sys.executable, "-m", "pipebench", *typed],
            cwd=self.here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a plan file."""
    file = str(tmp_path_factory.mktemp("plan") / "plan.json")
    assert run(["plan", "uniform", *WORKLOAD, "-o", file]) == 0
    return file


class CommandHere(Command):
    """Runs it in this process: Python, numpy and numba are imported already."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self._run, self._monkeypatch = CommandLine(capsys), monkeypatch

    def __call__(self, *typed: str, **more: str) -> "subprocess.CompletedProcess[str]":
        with self._monkeypatch.context() as patch:
            patch.chdir(self.here)
            patch.syspath_prepend(self.installed)
            for name, value in more.items():
                patch.setenv(name, value)
            done = self._run(*typed)
        return subprocess.CompletedProcess(typed, done.code, done.out, done.err)


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """The command as a user runs it."""
    return Command(tmp_path)


@pytest.fixture
def pipebench(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process."""
    return CommandHere(tmp_path, capsys, monkeypatch)


ENDINGS = {
    "os._exit(0)": "ended with exit code 0",
    "import ctypes; ctypes.string_at(0)": "killed by SIGSEGV",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise MemoryError": "MemoryError",
    "return 3": "returned int",
}


@pytest.mark.parametrize("body", mostly_at_night(ENDINGS, ["os._exit(0)"]))
def test_an_executor_that_breaks_ends_its_command_with_a_reason(process: Command, plan: str, body: str) -> None:
    process.install(offering("executors", body))
    done = process("execute", plan, "--executor", "evil")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert ENDINGS[body] in done.stderr
    assert "evil" in done.stderr


LEAVES_A_PROCESS = """
import time
if os.fork() == 0:
    os.setsid()
    os.close(1)
    os.close(2)
    time.sleep(60)
    os._exit(0)
"""


def test_an_executor_that_leaves_a_process_running_costs_its_columns(pipebench: Command) -> None:
    simulated = "return arguments[3].simulate(*arguments[:3])"
    pipebench.install(offering("executors", LEAVES_A_PROCESS + simulated))
    done = pipebench("compare", "--planners", "uniform", "--executors", "simulate,evil", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["status"], row["measured_s"]) == ("ok", None)
    (notice,) = [notice for notice in row["notices"] if "evil" in notice]
    assert "it left a process running" in notice


@pytest.mark.parametrize(
    ("second", "said"), [("return 3", "returned int"), ("os._exit(0)", "its process ended with exit code 0")]
)
def test_a_scheduler_that_leaves_a_process_running_fails_and_takes_none_along(
    pipebench: Command, second: str, said: str
) -> None:
    """Also where the next one ends the process that they share."""
    leaves = "\n".join(f"    {line}" for line in LEAVES_A_PROCESS.splitlines())
    made = TWO_SCHEDULERS.replace("    return 3", f"    {second}")
    pipebench.install(made.replace("    os._exit(0)", f"{leaves}\n    return 3", 1))
    done = pipebench("compare", "--planners", "uniform", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["status"] == "ok"
    left, returned = (notice for notice in row["notices"] if notice.startswith(("scheduler b", "scheduler r")))
    assert left.endswith("it left a process running; a scheduler waits for all that it starts")
    assert said in returned


SCHEDULERS = {
    "os._exit(0)": "its process ended with exit code 0",
    "import ctypes; ctypes.string_at(0)": "its process was killed by SIGSEGV",
    "raise SystemExit(0)": "SystemExit: 0",
    "return 3": "returned int",
    "raise KeyboardInterrupt": "KeyboardInterrupt (evil_one.py, line ",
    "import time; time.sleep(1000)": "no schedule within 10 s",
}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The row of `uniform` beside no other plugin."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run(["compare", "--planners", "uniform", *COMPARED]) == 0
    (row,) = json.loads(printed.getvalue())["rows"]
    found: dict[str, Any] = row
    return found


@pytest.mark.parametrize("body", mostly_at_night(SCHEDULERS, ["os._exit(0)", "raise KeyboardInterrupt"]))
def test_a_scheduler_that_breaks_costs_its_own_attempt(
    process: Command, expected: dict[str, Any], body: str
) -> None:
    """The suite tries every scheduler on every plan: one that breaks leaves the others theirs."""
    process.install(offering("schedulers", body))
    done = process("compare", "--planners", "uniform", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["status"], row["scheduler"]) == ("ok", expected["scheduler"])
    assert (row["simulated_s"], row["schedule_id"]) == (expected["simulated_s"], expected["schedule_id"])
    (notice,) = [notice for notice in row["notices"] if notice.startswith("scheduler evil: ")]
    assert SCHEDULERS[body] in notice


TWO_SCHEDULERS = f"""{HEAD}
@hookimpl
def pipebench_schedulers():
    return [Scheduler(name=name, summary="s", load="{{module}}:" + name) for name in ("breaks", "returns")]

def breaks(*arguments):
    os._exit(0)

def returns(*arguments):
    return 3
"""


def test_a_scheduler_that_breaks_takes_none_of_its_own_plugin_along(pipebench: Command) -> None:
    """They share a process; the others go on in another one."""
    pipebench.install(TWO_SCHEDULERS)
    done = pipebench("compare", "--planners", "uniform", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["status"] == "ok"
    broken, returned = (notice for notice in row["notices"] if notice.startswith(("scheduler b", "scheduler r")))
    assert broken.endswith("its process ended with exit code 0")
    assert "returned int" in returned


@pytest.mark.parametrize(
    "body", mostly_at_night(["os._exit(0)", "import ctypes; ctypes.string_at(0)"], ["os._exit(0)"])
)
def test_an_executor_that_breaks_costs_its_columns_only(pipebench: Command, body: str) -> None:
    pipebench.install(offering("executors", body))
    done = pipebench("compare", "--planners", "uniform", "--executors", "simulate,evil", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["status"] == "ok"
    assert any("executor evil" in line and "its process" in line for line in row["notices"])


@pytest.mark.parametrize(
    "body",
    mostly_at_night(["os._exit(0)", "import ctypes; ctypes.string_at(0)", "return 3"], ["os._exit(0)"]),
)
@pytest.mark.parametrize("slot", ["models", "profilers"])
def test_a_model_or_profiler_that_breaks_ends_its_command_with_a_reason(
    pipebench: Command, slot: str, body: str
) -> None:
    pipebench.install(offering(slot, body))
    model, profiler = ("evil", "analytic") if slot == "models" else ("transformer", "evil")
    done = pipebench("profile", model, "--profiler", profiler, "--device", "V100-SXM2-16GB", "-o", "p.json")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert ENDINGS[body] in done.stderr
    assert not (pipebench.here / "p.json").exists()


PROFILES = {
    "martian": "returned costs of martian, not of V100-SXM2-16GB as it was asked",
    "V100-SXM2-16GB": "every time on device type 'V100-SXM2-16GB' is 0",
}


@pytest.mark.parametrize("device", PROFILES)
def test_a_profile_that_no_comparison_would_take_is_refused_at_once(pipebench: Command, device: str) -> None:
    body = f"""
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
graph, context = arguments
sizes = context.request.micro_batches
times = ({int(device == "martian")}.0,) * len(sizes)
costs = tuple(OperatorCosts(operator=each.name, forward_s=times, backward_s=times) for each in graph.operators)
return Profile(
    name="p", graph=graph, costs=(DeviceCosts(device_type={device!r}, micro_batches=sizes, operators=costs),)
)
"""
    pipebench.install(offering("profilers", body))
    done = pipebench("profile", "transformer", "--profiler", "evil", "--device", "V100-SXM2-16GB", "-o", "p.json")
    assert done.returncode in (2, FAILED)
    assert PROFILES[device] in done.stderr
    assert not (pipebench.here / "p.json").exists()


def test_a_format_that_breaks_ends_its_command_with_a_reason(process: Command) -> None:
    process.install(offering("formats", "os._exit(0)", ', suffixes=(".evil",)'))
    (process.here / "net.evil").write_text("x")
    done = process("convert", "net.evil", "-o", "p.json")
    assert done.returncode == FAILED
    assert "format 'evil' failed: its process ended with exit code 0" in done.stderr


@pytest.mark.parametrize(
    ("body", "reason"),
    [("return 3", "loads int, which has no 'suite'"), ("os._exit(0)", "ended with exit code 0")],
)
def test_an_artefact_that_breaks_ends_its_command_with_a_reason(
    pipebench: Command, body: str, reason: str
) -> None:
    pipebench.install(offering("artefacts", body))
    done = pipebench("reproduce", "evil")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert reason in done.stderr


def test_a_hook_that_hangs_is_ended_at_the_time_limit(pipebench: Command, plan: str) -> None:
    pipebench.install(offering("executors", "import time\nwhile True: time.sleep(1)"))
    began = time.monotonic()
    done = pipebench("execute", plan, "--executor", "evil", "--timeout", "1")
    assert done.returncode == FAILED
    assert "executor 'evil' failed: no result within" in done.stderr
    assert time.monotonic() - began < 60


def test_what_a_plugin_prints_when_it_is_loaded_stays_off_stdout(process: Command) -> None:
    process.install("print('hello')\nimport os; os.write(1, b'raw')\n" + offering("planners", "return None"))
    done = process("list", "planners", "--json")
    assert "evil" in {entry["name"] for entry in json.loads(done.stdout)}
    assert "hello" not in done.stdout + done.stderr


def test_a_plugin_that_changes_the_folder_moves_nobody(pipebench: Command) -> None:
    pipebench.install("import os; os.chdir('/')\n" + offering("planners", "return None"))
    (pipebench.here / "mine.py").write_text(
        "CALLS = ('uniform',)\ndef plan(problem, context):\n    return context.plan('uniform', problem)\n"
    )
    done = pipebench("compare", "--planners", "./mine.py", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["status"], done.returncode) == ("ok", 0), row["reason"]


@pytest.mark.parametrize(
    "body", mostly_at_night(["os._exit(0)", "import ctypes; ctypes.string_at(0)"], ["os._exit(0)"])
)
def test_a_plugin_that_ends_the_process_when_it_is_loaded_is_left_out(process: Command, body: str) -> None:
    process.install(f"import os\n{body}\n")
    process.install(offering("planners", "return None", name="good"), "good-one")
    done = process("list", "planners")
    names = {line.split()[0] for line in done.stdout.splitlines()}
    assert {"good", "madpipe"} <= names
    assert done.returncode == 0
    assert "evil-one 1.2 (evil_one) is left out: while it is loaded its process" in done.stderr
    doctor = process("plugin", "doctor")
    assert doctor.returncode == 1
    assert "evil-one 1.2 (evil_one): while it is loaded its process" in doctor.stdout


def test_a_plugin_has_no_hand_in_what_another_offers(pipebench: Command) -> None:
    pipebench.install(
        "import pipebench.hooks.installed.catalogue as module\n"
        "honest = module.describe_offer\n"
        "def describe(slot, component, provider, entry):\n"
        "    object.__setattr__(component, 'summary', 'changed')\n"
        "    return honest(slot, component, provider, entry)\n"
        "module.describe_offer = describe\n" + offering("planners", "return None", name="a-evil"),
        "a-evil",
    )
    pipebench.install(offering("planners", "return None", name="good"), "good-one")
    done = pipebench("list", "planners", "--json")
    summaries = {entry["name"]: entry["summary"] for entry in json.loads(done.stdout)}
    assert (summaries["a-evil"], summaries["good"]) == ("changed", "s")
    assert "changed" not in summaries["madpipe"]


def test_the_process_of_a_command_imports_no_plugin(process: Command) -> None:
    process.install(offering("planners", "return None"))
    code = (
        "import sys; from pipebench.cli.main import run; code = run(sys.argv[1:]);"
        "print('LOADED', *sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    typed = ("compare", "--planners", "uniform,evil", "--models", "transformer", "--out", "store")
    path = os.pathsep.join([str(process.installed), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code, *typed, "--devices", "2", "--mini-batch", "8"],
        cwd=process.here,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = set(done.stderr.partition("LOADED ")[2].split())
    assert "pipebench.bench.trials.trial" in loaded, done.stderr
    assert not {name for name in loaded if name.startswith(("pipebench_", "evil_one"))}


def test_a_plugin_cannot_replace_the_simulator(process: Command, expected: dict[str, Any]) -> None:
    process.install(
        "import dataclasses, pipebench.simulation.simulate as module\n"
        "from msgspec.structs import replace\n"
        "honest = module.simulate\n"
        "def simulate(*given, **more):\n"
        "    made = honest(*given, **more)\n"
        "    return replace(made, total_ns=made.total_ns // 2)\n"
        "module.simulate = simulate\n" + offering("planners", "return None")
    )
    beside = process("compare", "--planners", "uniform", *COMPARED)
    (row,) = json.loads(beside.stdout)["rows"]
    assert row["simulated_s"] == expected["simulated_s"] > 0


TELLS = "from pipebench.domain.errors import PipebenchError\nraise PipebenchError(str({what}))"


def test_no_token_of_the_environment_reaches_a_hook(pipebench: Command) -> None:
    pipebench.install(offering("models", TELLS.replace("{what}", "sorted(os.environ.items())")))
    done = pipebench("profile", "evil", "-o", "p.json", GITHUB_TOKEN="sesame", MY_PASSWORD="sesame", LC_ALL="C")
    assert "LC_ALL" in done.stderr
    assert "sesame" not in done.stderr
    assert str(Path.home()) not in done.stderr.replace(os.environ["PATH"], "").partition("'HOME'")[2][:60]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process reads what it was started with")
def test_no_token_stands_in_what_a_hook_was_started_with(process: Command) -> None:
    process.install(offering("models", TELLS.replace("{what}", "open('/proc/self/environ').read()")))
    done = process("profile", "evil", "-o", "p.json", GITHUB_TOKEN="sesame", LC_ALL="C")
    assert "LC_ALL" in done.stderr
    assert "sesame" not in done.stderr


def test_a_variable_that_a_profiler_declares_reaches_it(pipebench: Command) -> None:
    body = TELLS.replace("{what}", "(os.environ.get('LICENCE_FILE'), os.environ.get('LICENSED'))")
    pipebench.install(offering("profilers", body, ', variables=("LICENCE_*",)'))
    typed = ("profile", "transformer", "--profiler", "evil", "--device", "V100-SXM2-16GB", "-o", "p.json")
    done = pipebench(*typed, LICENCE_FILE="here", LICENSED="no")
    assert "('here', None)" in done.stderr


@pytest.mark.skipif(not can_leave_network(), reason="the kernel permits no namespaces")
@pytest.mark.parametrize("declared", [False, True])
def test_the_network_is_off_but_where_it_is_declared(pipebench: Command, declared: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        body = (
            f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "except OSError as error:\n    said = f'refused {error}'\nelse:\n    said = 'connected'\n"
            + TELLS.replace("{what}", "said")
        )
        pipebench.install(offering("profilers", body, ", network=True" if declared else ""))
        done = pipebench(
            "profile", "transformer", "--profiler", "evil", "--device", "V100-SXM2-16GB", "-o", "p.json"
        )
    assert ("connected" if declared else "refused") in done.stderr


@pytest.mark.skipif(not landlock_version(), reason="SECURITY.md: where the kernel does not permit it")
def test_no_planner_opens_a_device(pipebench: Command) -> None:
    """A card is used by its device file, which is opened for writing. This one every machine has."""
    pipebench.install(offering("planners", 'os.open("/dev/random", os.O_RDWR)'))
    done = pipebench("compare", "--planners", "evil", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["status"] == "crashed"
    assert "PermissionError" in row["reason"]
    assert "/dev/random" in row["reason"]


def test_a_hook_works_in_a_folder_of_its_own(pipebench: Command) -> None:
    pipebench.install(
        offering("models", "open('litter', 'w').close()\n" + TELLS.replace("{what}", "os.listdir()"))
    )
    done = pipebench("profile", "evil", "-o", "p.json")
    assert "litter" in done.stderr
    assert list(pipebench.here.iterdir()) == []


def test_no_depth_of_folders_costs_other_rows_or_stays(process: Command, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    body = (
        "os.chdir(os.environ['HOME'])\n"
        "for _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\nos.chmod('.', 0)\n"
        "raise ValueError('deep enough')"
    )
    process.install(offering("planners", body))
    done = process("compare", "--planners", "evil,uniform", *COMPARED, TMPDIR=str(temporary))
    evil, uniform = json.loads(done.stdout)["rows"]
    assert evil["reason"].startswith("ValueError: deep enough")
    assert uniform["status"] == "ok"
    assert list(temporary.glob("pipebench-*-*")) == []


def test_what_a_planner_notes_reaches_its_row(pipebench: Command) -> None:
    (pipebench.here / "mine.py").write_text(
        "CALLS = ('uniform',)\ndef plan(problem, context):\n    context.note('a line for the row')\n"
        "    return context.plan('uniform', problem)\n"
    )
    done = pipebench("compare", "--planners", "./mine.py", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert "a line for the row" in row["notices"]


def test_a_file_that_is_no_python_costs_its_row(pipebench: Command) -> None:
    (pipebench.here / "mine.py").write_text("def plan(problem, context:\n    pass\n")
    done = pipebench("compare", "--planners", "uniform,./mine.py", *COMPARED)
    rows = {row["planner"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["uniform"]["status"] == "ok"
    assert rows["./mine.py"]["status"] == "crashed"
    assert "SyntaxError" in rows["./mine.py"]["reason"]
    assert "line 1)" in rows["./mine.py"]["reason"]
    assert done.returncode == FAILED


def test_a_micro_batch_that_is_a_text_is_named(pipebench: Command) -> None:
    (pipebench.here / "mine.py").write_text(
        "from pipebench.domain.plan import Plan, Stage\n"
        "def plan(problem, context):\n"
        "    names = tuple(each.name for each in problem.profile.graph.operators)\n"
        "    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch='8'),))\n"
    )
    done = pipebench("compare", "--planners", "./mine.py", *COMPARED)
    (row,) = json.loads(done.stdout)["rows"]
    assert "micro_batch is '8' of type str" in row["reason"]
    assert "TypeError" not in row["reason"]


READS_OTHERS_PLANS = """
from pathlib import Path

from pipebench.domain.plan import Plan, Stage


def plan(problem, context):
    store = Path(__file__).parent / "store"
    found = [file for file in (*store.rglob("objects/*/*"), store / "rows.jsonl") if file.read_bytes()]
    context.note(f"there: {store.is_dir()}, found: {len(found)}")
    names = [operator.name for operator in problem.profile.graph.operators]
    return Plan(stages=(Stage(operators=names, devices=[0], micro_batch=1),))
"""


@pytest.mark.skipif(not can_leave_network(), reason="the kernel permits no namespaces")
@pytest.mark.parametrize("jobs", mostly_at_night(["1", "2"], ["1"]))
def test_no_planner_reads_the_plans_of_others(pipebench: Command, jobs: str) -> None:
    (pipebench.here / "a.py").write_text(READS_OTHERS_PLANS)
    stored = ("--out", "store", "--jobs", jobs)
    pipebench("compare", "--planners", "uniform", *COMPARED, *stored)
    done = pipebench("compare", "--planners", "uniform,./a.py", *COMPARED, *stored)
    notices = {row["planner"]: row["notices"] for row in json.loads(done.stdout)["rows"]}
    assert "there: True, found: 0" in notices["./a.py"]


LOOKS_FOR_A_KERNEL = """
import os

from pipebench.domain.plan import Plan, Stage

FOLDER = os.path.join(os.environ["NUMBA_CACHE_DIR"], "one_for_others")
FOUND = os.path.exists(FOLDER)


def plan(problem, context):
    context.note(f"found: {FOUND}")
    names = [operator.name for operator in problem.profile.graph.operators]
    return Plan(stages=(Stage(operators=names, devices=[0], micro_batch=1),))
"""
LEAVES_A_KERNEL = f"""{LOOKS_FOR_A_KERNEL}

import numba

numba.njit(lambda number: 2 * number)(1)
if not FOUND:
    os.mkdir(FOLDER)
    open(os.path.join(FOLDER, "poisoned.nbi"), "wb").close()
"""


def test_no_file_reads_kernels_that_another_file_left(pipebench: Command, tmp_path: Path) -> None:
    (pipebench.here / "a.py").write_text(LEAVES_A_KERNEL)
    (pipebench.here / "b.py").write_text(LOOKS_FOR_A_KERNEL)
    kernels = tmp_path / "kernels"
    if (kept := kernel_folder()) is not None:  # so that nothing of the suite is compiled again
        shutil.copytree(kept, kernels)
    done = pipebench("compare", "--planners", "./a.py,./b.py", *COMPARED, NUMBA_CACHE_DIR=str(kernels))
    notices = {row["planner"]: row["notices"] for row in json.loads(done.stdout)["rows"]}
    assert "found: True" in notices["./a.py"], "it reads its own"
    assert "found: False" in notices["./b.py"]


def test_rules_of_options_hold_where_their_class_is_not_imported(process: Command) -> None:
    done = process("profile", "bert[hidden=7]", "-o", "p.json")
    assert done.returncode == 2
    assert done.stderr == "pipebench: bert[hidden=7]: the width of a head, 64, does not divide hidden=7\n"


def test_an_option_that_cannot_be_described_costs_its_component(pipebench: Command) -> None:
    options = (
        "from pipebench.domain.value import Value\nimport datetime\n"
        "class Options(Value, frozen=True, kw_only=True):\n    day: datetime.date = datetime.date(2024, 1, 1)\n"
    )
    pipebench.install(options + offering("planners", "return None", ", options=Options"))
    done = pipebench("list", "planners")
    assert "evil" not in {line.split()[0] for line in done.stdout.splitlines()}
    assert "option 'day': its type is <class 'datetime.date'>" in done.stderr


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("print('hello')\n", "prints 'hello' while it is loaded"),
        *(
            pytest.param(source, what, marks=pytest.mark.nightly)
            for source, what in (
                ("import os; os.chdir('/')\n", "changes the current folder while it is loaded"),
                ("import numpy\n", "imports numpy in every command"),
            )
        ),
    ],
)
def test_the_doctor_names_what_a_plugin_does_when_it_is_loaded(pipebench: Command, source: str, what: str) -> None:
    pipebench.install(source + offering("planners", "return None"))
    done = pipebench("plugin", "doctor")
    assert done.returncode == 1
    assert f"evil-one 1.2 (evil_one): {what}" in done.stdout


def test_the_doctor_shows_what_a_plugin_declares(pipebench: Command) -> None:
    pipebench.install(offering("executors", "return None", ', network=True, variables=("A", "B_*")'))
    done = pipebench("plugin", "doctor")
    assert "declared by evil-one: executor evil: network; variables A, B_*" in done.stdout
