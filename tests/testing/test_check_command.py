"""pipebench plugin check: what it prints, how it ends, and what an author waives."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install

SOURCE = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Scheduler

PIPEBENCH_API = 1
{extra}

@hookimpl
def pipebench_schedulers():
    return [Scheduler(name="{name}", summary="{summary}", load="{module}:schedule")]

def schedule(problem, plan, context):
    from pipebench.domain.errors import UnsupportedProblem
    raise UnsupportedProblem("not today")
"""
Install = Callable[..., None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(tmp_path)

    def put(extra: str = "", summary: str = "says no") -> None:
        monkeypatch.delitem(sys.modules, "lazy_one", raising=False)
        filled = SOURCE.replace("{extra}", extra).replace("{name}", "lazy").replace("{summary}", summary)
        install(tmp_path, "lazy-one", filled)

    return put


def test_the_outcomes_and_the_totals(pipebench: CommandLine, installed: Install) -> None:
    installed()
    done = pipebench("plugin", "check", "lazy")
    lines = done.out.splitlines()
    assert done.code == 1
    assert "ok      scheduler lazy: metadata" in lines
    assert "waived  scheduler lazy: validity-one-stage: refused: not today" in lines
    assert "FAILED  scheduler lazy: capabilities: one-stage: declared, and refused: not today" in lines
    assert lines[-1] == "lazy: 7 run, 6 waived, 1 failed"
    assert len(lines) == 7 + 6 + 1


@pytest.mark.parametrize("name", ["lazy-one", "lazy_one", "Lazy.One", "lazy"])
def test_a_plugin_goes_by_its_component_its_distribution_and_its_entry_point(
    pipebench: CommandLine, installed: Install, name: str
) -> None:
    installed()
    done = pipebench("plugin", "check", name, "--only", "metadata")
    assert (done.code, done.out.splitlines()[0]) == (0, "ok      scheduler lazy: metadata")


def test_json(pipebench: CommandLine, installed: Install) -> None:
    installed()
    done = pipebench("plugin", "check", "lazy", "--json")
    told = json.loads(done.out)
    assert done.code == 1
    assert told["totals"] == {"run": 7, "waived": 6, "failed": 1}
    assert sum(told["totals"].values()) - 1 == len(told["outcomes"])
    assert {outcome["component"] for outcome in told["outcomes"]} == {"lazy"}


def test_a_waiver_is_told_with_its_reason(pipebench: CommandLine, installed: Install) -> None:
    installed('PIPEBENCH_WAIVED = {"lazy:capabilities": "it is lazy on purpose"}')
    done = pipebench("plugin", "check", "lazy")
    assert done.code == 0
    assert "waived  scheduler lazy: capabilities: by its author: it is lazy on purpose" in done.out
    assert done.out.splitlines()[-1] == "lazy: 6 run, 7 waived, 0 failed"


@pytest.mark.parametrize(
    ("waivers", "told"),
    [
        ('{"lazy:capability": "why not"}', "a waiver of 'capability', there is no such check"),
        ('{"lazy:capabilities": " "}', "PIPEBENCH_WAIVED of lazy_one is wrong"),
        ('{"capabilities": "why not"}', "PIPEBENCH_WAIVED of lazy_one is wrong"),
        ("['lazy:capabilities']", "PIPEBENCH_WAIVED of lazy_one is wrong"),
    ],
)
def test_a_waiver_that_says_nothing_is_an_error(
    pipebench: CommandLine, installed: Install, waivers: str, told: str
) -> None:
    installed(f"PIPEBENCH_WAIVED = {waivers}")
    done = pipebench("plugin", "check", "lazy")
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["no-such-thing"], 2, "unknown plugin or component 'no-such-thing'"),
        (["madpip"], 2, "did you mean 'madpipe'?"),
        (["./missing.py"], 2, "there is no file './missing.py'"),
        (["cmd:./planner"], 2, "there is no program './planner'"),
        (["cmd:./planner[depth]"], 2, "write cmd:./planner[option=value,…]"),
        (["uniform", "--only", "pinz"], 2, "did you mean 'pins'?"),
        (["uniform", "--only", "optimality"], 4, "no check ran"),
    ],
)
def test_bad_input_is_one_line(pipebench: CommandLine, arguments: list[str], code: int, told: str) -> None:
    done = pipebench("plugin", "check", *arguments)
    assert done.code == code
    assert told in done.err
    assert done.err.count("\n") == 1


def test_a_file_is_a_planner(pipebench: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("def plan(problem, context):\n    return None\n")
    done = pipebench("plugin", "check", str(tmp_path / "none.py"))
    assert done.code == 1
    assert "returned NoneType, not a PlanResult" in done.out
    assert "discovery" not in done.out


def test_a_plugin_that_does_not_load_is_named(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "unlicensed-one", "raise RuntimeError('no licence')")
    done = pipebench("plugin", "check", "unlicensed-one")
    assert done.code == 3
    told = "pipebench: plugin 'unlicensed-one' could not be loaded: RuntimeError: no licence (unlicensed_one.py, "
    assert done.err.splitlines()[-1].startswith(told)


def program(folder: Path, code: str) -> str:
    """A command that runs Python in a file of that folder."""
    (folder / "mine.py").write_text("import json, os, sys\n" + code)
    return f"cmd:{sys.executable} mine.py"


def test_a_program_is_checked_where_it_is_typed(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = program(tmp_path, "print('not today', file=sys.stderr)\nsys.exit(11)\n")
    done = pipebench("plugin", "check", command)
    assert f"waived  planner {command}: validity-chain: refused: not today" in done.out
    assert f"ok      planner {command}: state" in done.out
    assert "discovery" not in done.out
    (failed,) = [line for line in done.out.splitlines() if line.startswith("FAILED")]
    assert failed.startswith(f"FAILED  planner {command}: capabilities: all 10 small problems are refused")


@pytest.mark.parametrize(
    ("check", "code", "told"),
    [
        (
            "pins",
            "sys.exit('no')",
            "no; a planner without a plan exits with code 10 (infeasible) or 11 (unsupported)",
        ),
        ("infeasible", "plan(all=1)", "no plan fits devices of 1000 bytes, it returned one"),
        (
            "determinism",
            "plan(claimed_s=100 + os.getpid())",
            "two processes with the same seed get different results",
        ),
        pytest.param(
            "counters", "plan(counters={'cuts': os.getpid()})", "counter 'cuts' is", marks=pytest.mark.nightly
        ),
        ("claims", "plan(claimed_s=1e-9)", "the work alone takes"),
        ("state", "open('left.txt', 'w'); plan()", "files in the current folder changed"),
        ("validity-tiny", "plan(claimed_s='1')", "at $.content.claimed_s: Expected `float | null`, got `str`"),
    ],
)
def test_the_faults_of_a_program_are_found(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, code: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    function = """
def plan(all=0, **said):
    names = [each["name"] for each in json.load(sys.stdin)["content"]["profile"]["graph"]["operators"]]
    stage = {"operators": names, "devices": [0], "micro_batch": 1}
    print(json.dumps({"pipebench": "result", "version": 1, "content": {"plan": {"stages": [stage]}, **said}}))

"""
    done = pipebench("plugin", "check", program(tmp_path, function + code), "--only", check)
    assert done.code == 1, done.out
    assert told in done.out
    assert not (tmp_path / "left.txt").exists()


def test_a_file_that_refuses_all_was_not_checked(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file declares nothing that it could be held to: a plan of one small problem is asked of it."""
    monkeypatch.chdir(tmp_path)
    raised = "def plan(problem, context):\n    raise UnsupportedProblem('not today')\n"
    Path("mine.py").write_text(f"from pipebench.domain.errors import UnsupportedProblem\n{raised}")
    done = pipebench("plugin", "check", "./mine.py", "--only", "capabilities")
    assert done.code == 1
    said = "all 10 small problems are refused, so that no plan was checked; tiny (sync): not today"
    assert f"FAILED  planner ./mine.py: capabilities: {said}" in done.out.splitlines()[0]
