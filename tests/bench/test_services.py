"""Components that call others, what a scheduler or executor may do, and what counts as search time."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pipebench.bench.searches.search as search_module
from pipebench.bench.searches.search import search_once
from pipebench.bench.services import HostServices
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.domain.result import PlanResult
from pipebench.hooks.manager import Host
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster, stages_plan
from tests.hooks.distributions import install

PROBLEM = chain_problem([10, 10], [20, 20], cluster(2, memory=1000), weights=[7, 8], mode="sync", mini_batch=4)
PLAN = stages_plan([[0], [1]])

PLUGIN = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Executor, Planner, Scheduler

PIPEBENCH_API = 1

@hookimpl
def pipebench_planners():
    return [Planner(name="inner", summary="", load="{module}:plan")]

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

def leave(*arguments):
    print("leaving")
    raise SystemExit(3)
"""


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

    found, _ = search_once(HostServices(host), planner(outer), PROBLEM, PROBLEM, "gpipe")
    assert found.plan == PLAN
    assert found.counters == {
        "own": 1,
        "inner.tried": 4,
        "inner.simulate.tasks": 2 * 16,
        "inner.simulate.transfers": 2 * 8,
    }


def test_counters_of_a_call_that_fails_are_kept(host: Host) -> None:
    context = HostServices(host).context(planner(lambda problem, context: None))
    with pytest.raises(AttributeError):
        context.plan("inner", "no problem")  # type: ignore[arg-type]
    assert context.counters == {"inner.tried": 2}


def test_a_scheduler_that_leaves_costs_the_row_and_prints_nothing_on_stdout(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    made = planner(lambda problem, context: PLAN)
    trial = Trial(workload=workload(PROBLEM), regime="sync", planner=made, scheduler="leaving")
    row = run_trial(host, trial).row
    assert (row.status, row.reason) == ("crashed", "scheduler 'leaving' failed: SystemExit: 3")
    assert capsys.readouterr().out == ""


def test_an_executor_that_leaves_costs_its_columns_only(host: Host) -> None:
    made = planner(lambda problem, context: PLAN)
    executors = ("leaving", "simulate")
    trial = Trial(workload=workload(PROBLEM), regime="sync", planner=made, executors=executors)
    row = run_trial(host, trial).row
    assert (row.status, row.executor) == ("ok", "simulate")
    assert "executor leaving: executor 'leaving' failed: SystemExit: 3" in row.notices


def test_looking_at_what_is_returned_is_not_search_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("exact_result", "exact_schedule"):
        exact = getattr(search_module, name)

        def slow(label: str, returned: object, exact: Any = exact) -> Any:
            time.sleep(0.2)
            return exact(label, returned)

        monkeypatch.setattr(search_module, name, slow)

    def quick(problem: Any, context: Any) -> PlanResult:
        time.sleep(0.05)
        return PlanResult(plan=PLAN)

    services = HostServices(Host())
    services.schedule("gpipe", PROBLEM, PLAN)
    _, duration = search_once(services, planner(quick), PROBLEM, PROBLEM, "gpipe")
    assert 0.05 <= duration.wall_s < 0.2
