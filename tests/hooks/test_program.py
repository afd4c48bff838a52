"""Programs as planners: the command line, what they leave behind, and time."""

import sys
import time
from pathlib import Path

import pytest

from pipebench.domain.document import encode
from pipebench.domain.errors import PipebenchError, PluginNotLoaded, UnsupportedProblem
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.program import run_program, split_command
from pipebench.hooks.script import load_script
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([1], [1], cluster(1))
PLAN = stages_plan([[0]])


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
