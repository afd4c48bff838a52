"""What the kit asks and when it stops, and what it says of code that does not answer as it should."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pipebench
from pipebench.hooks.manager import Host
from pipebench.testing import sessions
from pipebench.testing.calls import Call
from pipebench.testing.cases import PROBLEM_CASES
from pipebench.testing.kit import check_plugin
from pipebench.testing.planners import questions
from pipebench.testing.verdicts import ConformanceReport

HOST = Host()
ON_ONE_DEVICE = """
import ctypes
import msgspec
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    names = tuple(operator.name for operator in problem.profile.graph.operators)
    {line}
    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),))
"""


def checked(folder: Path, source: str, *only: str) -> ConformanceReport:
    """The report of a planner in a file with that source."""
    file = folder / "mine.py"
    file.write_text(source)
    return check_plugin(HOST, str(file), only=only)


def reasons(report: ConformanceReport, status: str) -> dict[str, str]:
    """Check to reason of the outcomes with that status."""
    return {outcome.check: outcome.reason for outcome in report.outcomes if outcome.status == status}


def test_after_a_call_that_does_not_end_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "SMALL_S", 2.0)
    monkeypatch.setattr(sessions, "SLOW_S", 0.5)
    told: list[str] = []
    file = tmp_path / "mine.py"
    file.write_text("def plan(problem, context):\n    while True: pass\n")
    report = check_plugin(HOST, str(file), slow=told.append)
    assert reasons(report, "failed") == {"validity-chain": "chain, first call (sync): hung: no answer within 2 s"}
    waived = reasons(report, "waived")
    assert waived.pop("options") == "it has no options to try"
    assert set(waived.values()) == {"not asked: an earlier call did not end"}
    assert report.count("passed") == 0
    assert told == [f"{file}: chain, first call (sync): no answer for 0.5 s, ended after 2 s"]


@pytest.mark.parametrize(
    ("component", "check", "names"),
    [
        ("uniform", "validity-tiny", {"tiny (sync)", "tiny (async)"}),
        (
            "uniform",
            "deadline",
            {
                f"{what} ({mode})"
                for what in ("deadline passed", "deadline near", "time to spare")
                for mode in ("sync", "async")
            },
        ),
        (
            "uniform",
            "infeasible",
            {f"{what} ({mode})" for what in ("starved", *PROBLEM_CASES) for mode in ("sync", "async")},
        ),
        ("gpipe", "validity-one-stage", {"one-stage"}),
        ("uniform", "memo", {f"large, search {number} (sync)" for number in (1, 2, 3)}),
    ],
)
def test_only_the_calls_that_a_check_needs_are_made(
    monkeypatch: pytest.MonkeyPatch, component: str, check: str, names: set[str]
) -> None:
    made: list[str] = []
    run = sessions._run

    def noted(calls: Sequence[Call], *more: Any) -> Any:
        made.extend(call.name for call in calls)
        return run(calls, *more)

    monkeypatch.setattr(sessions, "_run", noted)
    report = check_plugin(HOST, component, only=(check,))
    assert [outcome.status for outcome in report.outcomes] == ["passed"]
    assert set(made) == names


ADVICE = "; a planner without a plan raises InfeasibleProblem or UnsupportedProblem"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}['x']", "crashed: KeyError: 'x' (mine.py, line 9)"),
        (
            "plan(problem)",
            "crashed: TypeError: plan() missing 1 required positional argument: 'context' (mine.py, line 9)",
        ),
        ("raise PipebenchError('odd')", f"refused: odd (mine.py, line 9){ADVICE}"),
        ("raise PipebenchError('odd', 'do this')", "refused: odd (do this) (mine.py, line 9)"),
        (
            "Stage(operators=names, devices=(0,), micro_batch=0)",
            "refused: micro_batch is 0, {range} (mine.py, line 9)",
        ),
        ("names = names[:-1]", "refused: its plan: operator 'op0' is in no stage"),
        (
            "return None",
            "unusable: planner '{file}' returned NoneType, not a PlanResult "
            "(return pipebench.domain.result.PlanResult(plan=…))",
        ),
        ("ctypes.string_at(0)", "died: its process was killed by SIGSEGV: in plan, {file} line 9"),
    ],
)
def test_advice_is_given_where_it_fits(tmp_path: Path, line: str, told: str) -> None:
    report = checked(tmp_path, ON_ONE_DEVICE.replace("{line}", line), "validity-tiny")
    about = "tiny (sync): " + told.replace("{file}", str(tmp_path / "mine.py"))
    about = about.replace("{range}", "it must be between 1 and 2^31")
    assert reasons(report, "failed") == {"validity-tiny": about}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('rubbish')", "it begins with 'rubbish' (write a document of kind result to standard output)"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL: it says nothing on standard error"),
        (
            "import sys; sys.exit('no')",
            "no; a planner without a plan exits with code 10 (infeasible) or 11 (unsupported)",
        ),
    ],
)
def test_a_program_that_does_not_refuse_is_not_told_how_to(tmp_path: Path, code: str, told: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code)
    report = check_plugin(HOST, f"cmd:{sys.executable} {file}", only=("validity-tiny",))
    assert reasons(report, "failed")["validity-tiny"].endswith(told)


def test_what_cannot_be_loaded_fails_once(tmp_path: Path) -> None:
    report = checked(tmp_path, "def plan(problem, context)\n")
    ((check, reason),) = reasons(report, "failed").items()
    assert check == "validity-chain"
    assert "not loaded" in reason
    assert "SyntaxError: expected ':'" in reason
    assert reasons(report, "waived")["deadline"] == "not asked: it cannot be loaded"
    assert reasons(checked(tmp_path, "def plan(problem, context)\n", "pins"), "failed").keys() == {"pins"}


def test_a_problem_that_was_changed_is_named(tmp_path: Path) -> None:
    source = ON_ONE_DEVICE.replace("{line}", "msgspec.structs.force_setattr(problem, 'mini_batch', 1)")
    failed = reasons(checked(tmp_path, source, "state", "validity-tiny"), "failed")
    assert failed["state"] == "chain, first call (sync): its problem was changed"
    assert failed["validity-tiny"].endswith("; its problem was changed")


def test_the_last_words_of_a_process_are_its_own() -> None:
    frames = '  File "/usr/lib/x/numpy.py", line 3 in dot\n  File "/home/me/mine.py", line 7 in plan\n'
    modules = "\nExtension modules: numpy.random, msgspec (total: 2)\n"
    fatal = "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
    suite = f'  File "{pipebench.__path__[0]}/testing/probe.py", line 9 in work\n'
    assert sessions.last_words(fatal + suite + frames + modules) == "in dot, /usr/lib/x/numpy.py line 3"
    assert sessions.last_words("one\ntwo" + modules) == "two"
    assert sessions.last_words("") == ""
