"""Components that call others, what a scheduler or executor may do, and what counts as search time."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pipebench.bench.searches.search as search_module
from pipebench.bench.components import ready_planner
from pipebench.bench.searches.search import search_once
from pipebench.bench.services import HostServices
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.domain.errors import PipebenchError
from pipebench.domain.result import PlanResult
from pipebench.hooks.calls import UndeclaredCall, declared_calls
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster, stages_plan
from tests.hooks.distributions import install

PROBLEM = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), weights=[7, 8], mode="sync", mini_batch=4)
PLAN = stages_plan([[0], [1]])

PLUGIN = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Executor, Planner, Scheduler
from pipebench.domain.value import Value

PIPEBENCH_API = 1

class Naming(Value, frozen=True, kw_only=True):
    helper: str = ""
    other: str = "1f1b[warmup=+2]"

@hookimpl
def pipebench_planners():
    return [
        Planner(name="inner", summary="", load="{module}:plan", calls=("gpipe",)),
        Planner(name="secret", summary="", load="{module}:plan"),
        Planner(name="relay", summary="", load="{module}:relayed", options=Naming),
    ]

@hookimpl
def pipebench_schedulers():
    return [Scheduler(name="leaving", summary="", load="{module}:leave")]

@hookimpl
def pipebench_executors():
    return [Executor(name="leaving", summary="", load="{module}:leave")]

def plan(problem, context):
    from tests.builders import stages_plan
    context.count("tried", 2)
    made = stages_plan([[0], [1]])
    context.simulate(problem, made, context.schedule("gpipe", problem, made))
    return made

def relayed(problem, context):
    return context.plan(context.options.helper, problem)

def leave(*arguments):
    print("leaving")
    raise SystemExit(3)
"""
LEAVING = f"nested_plugin.py, line {PLUGIN.count(chr(10))}"
"""Its last line."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nested_plugin", raising=False)
    install(tmp_path, "nested-plugin", PLUGIN)
    return Host()


def test_what_a_component_calls_adds_to_its_counters(host: Host) -> None:
    def outer(problem: Any, context: Any) -> Any:
        context.count("own")
        context.plan("inner", problem)
        return context.plan("inner", problem)

    found, _ = search_once(HostServices(host), planner(outer, calls=("inner",)), PROBLEM, "gpipe")
    assert found.result.plan == PLAN
    assert found.counters == {
        "own": 1,
        "inner.tried": 4,
        "inner.simulate.tasks": 2 * 16,
        "inner.simulate.transfers": 2 * 8,
    }


def test_the_length_of_a_simulation_counts_as_the_simulation(host: Host) -> None:
    services = HostServices(host)
    both = []
    for name in ("simulate", "simulated_ns"):
        context = services.context(planner(lambda problem, context: None))
        schedule = services.schedule("gpipe", PROBLEM, PLAN)
        both.append((getattr(context, name)(PROBLEM, PLAN, schedule), context.counters))
    (trace, counted), (length_ns, again) = both
    assert (length_ns, again) == (trace.total_ns, counted)
    assert counted == {"simulate.tasks": 16, "simulate.transfers": 8}


def test_counters_of_a_call_that_fails_are_kept(host: Host) -> None:
    context = HostServices(host).context(planner(lambda problem, context: None, calls=("inner",)))
    with pytest.raises(AttributeError):
        context.plan("inner", "no problem")  # type: ignore[arg-type]
    assert context.counters == {"inner.tried": 2}


def test_a_call_that_is_not_declared_is_refused_with_the_remedy(host: Host) -> None:
    context = HostServices(host).context(planner(lambda problem, context: None, calls=("inner",)))
    with pytest.raises(UndeclaredCall, match=r"'mine' asks for 'uniform'.*CALLS = \('inner', 'uniform'\)"):
        context.plan("uniform", PROBLEM)
    with pytest.raises(UndeclaredCall, match=r"asks for '1f1b\[warmup=\+2\]'.*CALLS = \('1f1b', 'inner'\)"):
        context.schedule("1f1b[warmup=+2]", PROBLEM, PLAN)
    with pytest.raises(UndeclaredCall, match=r"'secret' asks for 'gpipe'.*calls=\('gpipe',\) in its descriptor"):
        HostServices(host).context(planner(lambda problem, context: None, calls=("secret",))).plan(
            "secret", PROBLEM
        )
    assert context.plan("inner", PROBLEM).plan == PLAN


def test_a_refused_call_cannot_be_mistaken_for_a_callee_that_fails(host: Host) -> None:
    def plan(problem: Any, context: Any) -> Any:
        with suppress(PipebenchError):
            context.plan("uniform", problem)
        return PLAN

    row = run_trial(host, Trial(workload=workload(PROBLEM), regime="sync", planner=planner(plan))).row
    assert (row.status, row.reason[:14]) == ("crashed", "UndeclaredCall")


def test_what_the_user_names_in_an_option_is_declared(host: Host) -> None:
    services = HostServices(host)
    for text, names in (("relay[helper=inner]", {"inner", "1f1b"}), ("relay", {"1f1b"})):
        ready = services.planner(text)
        assert declared_calls(ready.component, ready.options) == names
    assert services.plan("relay[helper=inner]", PROBLEM).plan == PLAN


def test_undeclared_calls_are_noted_where_they_are_looked_for(host: Host) -> None:
    noted: list[tuple[str, str]] = []
    services = HostServices(host, undeclared=noted)
    assert services.plan("secret", PROBLEM).plan == PLAN
    assert noted == [("secret", "gpipe")]


def test_a_file_declares_what_it_calls(host: Host, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    text = 'CALLS = ("inner",)\n\ndef plan(problem, context):\n    return context.plan("inner", problem)\n'
    script.write_text(text)
    ready = ready_planner(host, parse_reference(str(script)))
    assert ready.component.calls == ("1f1b", "1f1b*", "inner")
    assert HostServices(host).plan(str(script), PROBLEM).plan == PLAN
    script.write_text("CALLS = tuple(NAMES)\n\ndef plan(problem, context): ...\n")
    with pytest.raises(PipebenchError, match="CALLS is no tuple of names"):
        ready_planner(host, parse_reference(str(script)))


def test_a_scheduler_that_leaves_costs_the_row_and_prints_nothing_on_stdout(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    made = planner(lambda problem, context: PLAN)
    trial = Trial(workload=workload(PROBLEM), regime="sync", planner=made, scheduler="leaving")
    row = run_trial(host, trial).row
    assert (row.status, row.reason) == ("crashed", f"scheduler 'leaving' failed: SystemExit: 3 ({LEAVING})")
    assert capsys.readouterr().out == ""


def test_an_executor_that_leaves_costs_its_columns_only(host: Host) -> None:
    made = planner(lambda problem, context: PLAN)
    executors = ("leaving", "simulate")
    trial = Trial(workload=workload(PROBLEM), regime="sync", planner=made, executors=executors)
    row = run_trial(host, trial).row
    assert (row.status, row.executor) == ("ok", "simulate")
    assert f"executor leaving: executor 'leaving' failed: SystemExit: 3 ({LEAVING})" in row.notices


def test_looking_at_what_is_returned_is_not_search_time(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = search_module.exact_result

    def slow(label: str, returned: object) -> Any:
        time.sleep(0.2)
        return exact(label, returned)

    monkeypatch.setattr(search_module, "exact_result", slow)

    def quick(problem: Any, context: Any) -> PlanResult:
        time.sleep(0.05)
        return PlanResult(plan=PLAN)

    _, duration = search_once(HostServices(Host()), planner(quick), PROBLEM, None)
    assert 0.05 <= duration.wall_s < 0.2
