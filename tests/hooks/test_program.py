"""Programs as planners: the command line, what they leave behind, and time."""

import json
import os
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pipebench.documents.document import PlannedProblem, encode
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, PluginNotLoaded, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, ProgramResult
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.programs import program
from pipebench.hooks.programs.program import find_program, split_command
from pipebench.hooks.programs.program import run_program as run_found
from pipebench.hooks.programs.program_call import THREAD_LIMITS, VARIABLES, ProgramOptions
from pipebench.hooks.programs.script import load_script
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([1], [1], cluster(1))
PLAN = stages_plan([[0]])
SCHEDULE = FiniteSchedule(lanes=(Lane(devices=(0,), stage=(0, 0), micro_batch=(0, 0), kinds="FB"),))


def run_program(command: str, problem: Problem, context: Context) -> PlanResult:
    return run_found(find_program(command), problem, context)


def printing(document: bytes, folder: Path) -> str:
    """A command that writes the document to its output."""
    (folder / "document.json").write_bytes(document)
    return f"cat {shlex.quote(str(folder / 'document.json'))}"


def environment(context: Context, folder: Path, problem: Problem = PROBLEM) -> dict[str, str]:
    """The environment of a program that is run with this context."""
    (folder / "plan.json").write_bytes(encode("bare-plan", PLAN))
    seen = folder / "environment.json"
    code = (
        f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w')); print(open('plan.json').read())"
    )
    (folder / "told.py").write_text(code.replace("'plan.json'", repr(str(folder / "plan.json"))))
    run_program(f"{sys.executable} {folder / 'told.py'}", problem, context)
    told: dict[str, str] = json.loads(seen.read_text())
    return told


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_bytes(encode("bare-plan", PLAN))
    return file


@pytest.mark.parametrize("command", ['"abc', "'abc", "a\0b", "", "   ", "''", "abc \\"])
def test_commands_that_cannot_be_run_are_one_line(command: str) -> None:
    with pytest.raises(PipebenchError) as caught:
        split_command(command)
    assert "\n" not in str(caught.value)
    with pytest.raises(PipebenchError):
        run_program(command, PROBLEM, Context(options=None))


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").write_text("#!/bin/sh\n")
    Path("folder").mkdir()
    for command, message, hint in (
        ("./nofile -x", "there is no program './nofile'", "PATH"),
        ("no-such-program-anywhere", "no program 'no-such-program-anywhere' on the PATH", "PATH"),
        ("./folder", "is a directory", "PATH"),
        ("./plain", "'./plain' is not executable", "chmod +x ./plain"),
        ("plain", "no program 'plain' on the PATH", "write cmd:./plain"),
    ):
        with pytest.raises(PipebenchError) as caught:
            split_command(command)
        assert message in caught.value.message
        assert hint in str(caught.value.hint)
    Path("plain").chmod(0o755)
    assert split_command("./plain 'a b'") == ["./plain", "a b"]


def test_the_problem_is_on_stdin_and_the_plan_on_stdout(plan_file: Path) -> None:
    check = f"import sys, json; json.load(sys.stdin)['content']['profile']; print(open('{plan_file}').read())"
    result = run_program(f'{sys.executable} -c "{check}"', PROBLEM, Context(options=None))
    assert result.plan == PLAN


@pytest.mark.parametrize("deadline", [None, 60.0])
@pytest.mark.parametrize("child", ["sleep 30 &", "setsid sleep 3 &"])
def test_a_child_that_holds_stdout_is_not_waited_for(plan_file: Path, child: str, deadline: float | None) -> None:
    began = time.monotonic()
    context = Context(options=None, deadline_s=None if deadline is None else began + deadline)
    assert run_program(f"sh -c '{child} cat {plan_file}'", PROBLEM, context).plan == PLAN
    assert time.monotonic() - began < 2.5


def test_the_deadline_ends_the_whole_group() -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineReached):
        run_program("sh -c 'sleep 30; sleep 30'", PROBLEM, Context(options=None, deadline_s=began + 0.2))
    assert time.monotonic() - began < 5


def test_the_last_line_of_stderr_is_the_reason() -> None:
    with pytest.raises(UnsupportedProblem, match=r"^only chains$"):
        run_program("sh -c 'echo first >&2; echo only chains >&2; exit 11'", PROBLEM, Context(options=None))


def test_a_script_that_leaves_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "leaving_script.py"
    file.write_text("raise SystemExit(4)")
    with pytest.raises(PluginNotLoaded, match="SystemExit: 4"):
        load_script(str(file))
    assert "pipebench_script_leaving_script" not in sys.modules


def test_a_program_is_told_what_a_function_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("PIPEBENCH_SEED", "of the user")
    context = Context(
        options=ProgramOptions(options={"depth": "3", "all": "true"}),
        seed=7,
        deadline_s=time.monotonic() + 60,
        scheduler="zb-v",
        placements=("v", "apart"),
    )
    told = environment(context, tmp_path, chain_problem([1], [1], cluster(4)))
    assert json.loads(told["PIPEBENCH_OPTIONS"]) == {"all": "true", "depth": "3"}
    assert told["PIPEBENCH_SEED"] == "7"
    assert 50 < float(told["PIPEBENCH_DEADLINE_S"]) <= 60
    assert told["PIPEBENCH_DEVICES"] == "4"
    assert told["PIPEBENCH_SCHEDULER"] == "zb-v"
    assert json.loads(told["PIPEBENCH_PLACEMENTS"]) == ["v", "apart"]
    assert {told[name] for name in ("PIPEBENCH_THREADS", *THREAD_LIMITS)} == {"1"}
    assert {variable.name for variable in VARIABLES} <= told.keys()


def test_what_is_not_said_is_empty_or_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEBENCH_DEADLINE_S", "of the user")
    told = environment(Context(options=None), tmp_path)
    assert "PIPEBENCH_DEADLINE_S" not in told
    assert (told["PIPEBENCH_OPTIONS"], told["PIPEBENCH_PLACEMENTS"], told["PIPEBENCH_SCHEDULER"]) == (
        "{}",
        "[]",
        "",
    )


def test_a_result_arrives_with_every_field_and_its_counters(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "plan": PLAN,
        "schedule": SCHEDULE,
        "scheduler": "mine",
        "claimed_s": 2.5,
        "claimed_native": 9.0,
        "claimed_unit": "cycles",
        "lower_bound_s": 1.5,
        "bound_scope": "two stages",
        "termination": "limit",
        "notices": ("stopped early",),
    }
    assert fields.keys() == set(PlanResult.__struct_fields__)
    for name, value in fields.items():
        default = next(info.default for info in msgspec.structs.fields(PlanResult) if info.name == name)
        assert value != default, f"{name}: a default would arrive as well"
    document = encode("result", ProgramResult(**fields, counters={"states": 12, "cuts": 0}))
    context = Context(options=None, counters={"states": 1})
    found = run_program(printing(document, tmp_path), PROBLEM, context)
    assert type(found) is PlanResult
    assert found == PlanResult(**fields)
    assert context.counters == {"states": 13, "cuts": 0}


def test_a_plan_with_its_schedule_is_read(tmp_path: Path) -> None:
    document = encode("plan", PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=SCHEDULE))
    assert run_program(printing(document, tmp_path), PROBLEM, Context(options=None)).schedule == SCHEDULE


def result_with(**changed: object) -> bytes:
    plain = json.loads(encode("result", ProgramResult(plan=PLAN)))
    plain["content"] |= changed
    return json.dumps(plain).encode()


STAGE = {"operators": ["op0"], "devices": [0], "micro_batch": "8"}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (result_with(claimed_s="fast"), "at $.content.claimed_s: Expected `float | null`, got `str`"),
        (result_with(termination="best"), "at $.content.termination: Invalid enum value 'best'"),
        (
            result_with(plan={"stages": [STAGE]}),
            "at $.content.plan.stages[0].micro_batch: Expected `int`, got `str`",
        ),
        (result_with(counters={"states": 1.5}), "at $.content.counters[...]: Expected `int`, got `float`"),
        (result_with(counters={"states": -3}), "at $.content: counter 'states' is -3, a count is not negative"),
        (result_with(notices="one"), "at $.content.notices: Expected `array`, got `str`"),
        (result_with(schedule={"type": "finite"}), "at $.content.schedule: Object missing required field `lanes`"),
        (result_with(claim=1), "at $.content: Object contains unknown field `claim`"),
        (b"", "it is empty (write a document of kind result to standard output)"),
        (
            b"this is rubbish that\x1b[31m goes on for longer than that\n",
            "not valid JSON: JSON is malformed: invalid character (byte 4); it begins with "
            "'this is rubbish that\\x1b[31m goes on for lo' (write a document of kind result to standard output)",
        ),
        (encode("problem", PROBLEM), "holds a problem, not a plan (write one of result, bare-plan, plan)"),
    ],
)
def test_output_that_is_wrong_is_named_by_its_path(document: bytes, reason: str, tmp_path: Path) -> None:
    context = Context(options=None)
    with pytest.raises(PipebenchError) as caught:
        run_program(printing(document, tmp_path), PROBLEM, context)
    assert str(caught.value) == f"output of cmd:cat: {reason}"
    assert context.counters == {}


def test_messages_hold_no_arguments_of_the_command() -> None:
    for code, kind in ((3, PipebenchError), (10, InfeasibleProblem)):
        with pytest.raises(kind) as caught:
            run_program(f"sh -c 'exit {code}' --token=secret", PROBLEM, Context(options=None))
        assert "secret" not in str(caught.value)


def test_the_end_of_stderr_is_passed_on(plan_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_program(f"sh -c 'echo tried 3 cuts >&2; cat {plan_file}'", PROBLEM, Context(options=None))
    assert capfd.readouterr().err == "tried 3 cuts\n"


def test_a_command_runs_in_another_folder_than_it_was_typed_in(
    plan_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    away = tmp_path / "away"
    away.mkdir()
    Path("run.sh").write_text('#!/bin/sh\ncat "$1"\n')
    Path("run.sh").chmod(0o755)
    commands = ("./run.sh plan.json", "sh run.sh plan.json", "away/../run.sh ./plan.json", "'./run.sh plan.json'")
    programs = [find_program(command) for command in commands]
    assert find_program("./run.sh away").words[1] == "away", "a word that names no file is a word"
    os.chdir(away)
    for found in programs:
        assert run_found(found, PROBLEM, Context(options=None)).plan == PLAN


def test_a_command_in_quotes_is_what_stands_between_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert split_command("'sh -x --y=[1]'") == ["sh", "-x", "--y=[1]"]
    Path("sh -x").write_text("#!/bin/sh\n")
    Path("sh -x").chmod(0o755)
    assert split_command("'./sh -x'") == ["./sh -x"], "a program of that name is that program"


def test_the_problem_of_a_program_is_the_whole_problem(tmp_path: Path) -> None:
    problem = replace(PROBLEM, overlap=0.5)
    kept = tmp_path / "problem.json"
    plan = printing(encode("bare-plan", PLAN), tmp_path)
    run_program(f"sh -c 'cat > {kept}; {plan}'", problem, Context(options=None))
    assert kept.read_bytes() == encode("problem", problem)


def failing(source: str, folder: Path, name: str = "failing") -> str:
    """The error of a program with that source."""
    file = folder / name
    file.write_text(source)
    file.chmod(0o755)
    with pytest.raises(PipebenchError) as caught:
        run_program(str(file), PROBLEM, Context(options=None))
    return str(caught.value).removeprefix(f"cmd:{file}").removeprefix(f"output of cmd:{file}")


def test_output_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_WRITTEN_BYTES", 2**20)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    began = time.monotonic()
    with pytest.raises(PipebenchError, match="wrote a file of more than 1048576 bytes"):
        run_program("yes", PROBLEM, Context(options=None, deadline_s=began + 60))
    assert time.monotonic() - began < 50
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before


def test_a_script_whose_command_wrote_too_much_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_WRITTEN_BYTES", 2**20)
    source = "#!/bin/sh\nhead -c 2000000 /dev/zero; echo wrote all >&2; exit 3\n"
    assert failing(source, tmp_path) == " wrote a file of more than 1048576 bytes (write less)"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "#!/no/such/interpreter -x\n",
            ": its first line names an interpreter that is not there: '/no/such/interpreter' "
            "(name one that is there behind #!)",
        ),
        (
            "#!/bin/sh\r\n",
            ": its first line names an interpreter that is not there: '/bin/sh\\r' "
            "(name one that is there behind #!)",
        ),
        (
            "echo hi\n",
            ": it is neither a program of this machine nor a script that names its interpreter "
            "(put #!/bin/sh, or what else runs it, in its first line)",
        ),
        ("#!/bin/sh\nexit 3\n", " ended with exit code 3: it says nothing on standard error"),
        ("#!/bin/sh\necho no >&2; exit 3\n", " ended with exit code 3: no"),
        ("#!/bin/sh\nkill -9 $$\n", " was killed by SIGKILL: it says nothing on standard error"),
        ("#!/bin/sh\nhead -c 70000000 /dev/zero\n", ": 70.0 MB, at most 67.1 MB are read"),
    ],
)
def test_how_a_program_failed_is_said_with_what_to_do(source: str, told: str, tmp_path: Path) -> None:
    assert failing(source, tmp_path) == told
