"""The kit finds each fault, names it, and finds nothing else."""

import pytest

from pipebench.hooks.manager import Host
from pipebench.testing import executors
from pipebench.testing.kit import check_plugin
from pipebench.testing.planners import questions
from tests.nightly import mostly_at_night

PLANNERS = {
    "faulty-honest": set(),
    "faulty-metadata": {"metadata"},
    "faulty-validity": {"validity-dag"},
    "faulty-validity-order": {"validity-dag"},
    "faulty-infeasible": {"infeasible"},
    "faulty-infeasible-always": {"infeasible", "deadline"},
    "faulty-deadline-early": {"deadline"},
    "faulty-memory-edge": {"memory-edge"},
    "faulty-pins": {"pins"},
    "faulty-determinism": {"determinism"},
    "faulty-counters": {"counters"},
    "faulty-deadline": {"deadline"},
    "faulty-capabilities": {"capabilities"},
    "faulty-calls": {"calls"},
    "faulty-claims": {"claims"},
    "faulty-claims-high": {"claims"},
    "faulty-deadline-infeasible": {"deadline"},
    "faulty-optimality-outside": {"optimality"},
    "faulty-optimality": {"optimality"},
    "faulty-silence": {"silence"},
    "faulty-state": {"state"},
    "faulty-state-left": {"state"},
    "faulty-state-thread": {"state"},
    "faulty-busy": set(),
    "faulty-clocks": {"clocks"},
    "faulty-files": {"files"},
    "faulty-files-times": {"files"},
    "faulty-memo": {"memo"},
    "faulty-offload": {"offload"},
    "faulty-offload-daemon": {"offload"},
    "faulty-offload-server": {"offload"},
    "faulty-options": {"options"},
    "faulty-options-unexplained": {"options"},
    "faulty_discovery": {"discovery"},
    "faulty_greeting": {"discovery"},
}
SLOW = {"faulty-files-times", "faulty-offload-daemon"}
"""Faults that a check finds in another planner as well."""
WHOLE = {"faulty-honest", "faulty-busy", "faulty-metadata", "faulty-pins", "faulty-memo", "faulty_discovery"}
"""With a change these go through all checks; of the others those are run alone that find their faults."""
SCHEDULES = {"validity-one-stage", "validity-chain", "validity-branches"}
OTHERS = {
    "executor-honest": set(),
    "executor-watchful": set(),
    "executor-runs": {"runs"},
    "executor-tasks": {"tasks"},
    "executor-order": {"order"},
    "executor-clocks": {"clocks"},
    "executor-total": {"clocks"},
    "executor-columns": {"runs", "cancel"},
    "executor-cancel": {"cancel"},
    "executor-dead-worker": {"dead-worker"},
    "executor-no-worker": {"dead-worker"},
    "scheduler-honest": set(),
    "scheduler-validity": SCHEDULES,
    "scheduler-capabilities": {"capabilities"},
    "scheduler-calls": {"calls"},
    "scheduler-silence": {"silence"},
    "scheduler-state": {"state"},
    "scheduler-crash": {*SCHEDULES, "validity-replicas"},
    "scheduler-determinism": {"determinism"},
    "profiler-profile": {"profile"},
    "profiler-unknown-kind": {"unknown-kind"},
    "profiler-determinism": {"determinism"},
    "model-graph": {"graph"},
    "model-pieces": {"graph"},
    "model-determinism": {"determinism"},
    "format-suffixes": {"metadata"},
    "format-garbage": {"garbage"},
    "format-accepts": {"garbage"},
    "format-sample": {"sample"},
    "artefact-judge": {"judge"},
    "artefact-cells": {"cells"},
    "artefact-determinism": {"determinism"},
}


@pytest.mark.parametrize("name", mostly_at_night(PLANNERS, WHOLE))
def test_the_fault_of_a_planner_is_named(faulty_host: Host, name: str) -> None:
    report = check_plugin(faulty_host, name)
    assert {o.check: o.reason for o in report.outcomes if o.status == "failed"}.keys() == PLANNERS[name]
    assert len(report.outcomes) == 24


@pytest.mark.parametrize("name", sorted(PLANNERS.keys() - SLOW - WHOLE))
def test_the_check_alone_names_the_fault_of_a_planner(faulty_host: Host, name: str) -> None:
    report = check_plugin(faulty_host, name, only=sorted(PLANNERS[name]))
    assert {o.check for o in report.outcomes if o.status == "failed"} == PLANNERS[name]
    assert len(report.outcomes) == len(PLANNERS[name])


@pytest.mark.parametrize("name", mostly_at_night(OTHERS, {name for name in OTHERS if name.endswith("-honest")}))
def test_the_fault_of_another_component_is_named(
    faulty_host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(executors, "LATE_S", 4.0)
    report = check_plugin(faulty_host, name)
    failed = {o.check: o.reason for o in report.outcomes if o.status == "failed"}
    assert failed.keys() == OTHERS[name], failed
    assert all(reason and "\n" not in reason for reason in failed.values())


@pytest.mark.parametrize("name", [name for name in OTHERS if OTHERS[name]])
def test_the_check_alone_names_the_fault_of_another_component(
    faulty_host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(executors, "LATE_S", 4.0)
    report = check_plugin(faulty_host, name, only=sorted(OTHERS[name]))
    failed = {o.check: o.reason for o in report.outcomes if o.status == "failed"}
    assert failed.keys() == OTHERS[name], failed
    assert len(report.outcomes) == len(OTHERS[name])
    assert all(reason and "\n" not in reason for reason in failed.values())


def test_nothing_is_said_of_traces_where_no_run_left_one(faulty_host: Host) -> None:
    report = check_plugin(faulty_host, "executor-refusing", only=("runs", "tasks", "order", "clocks"))
    assert [outcome.status for outcome in report.outcomes] == ["waived"] * 4


def test_a_planner_that_never_looks_at_the_clock_is_killed(
    faulty_host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "LATE_S", 2.0)
    report = check_plugin(faulty_host, "faulty-slow-deadline", only=("deadline",))
    (outcome,) = report.outcomes
    assert outcome.reason == "deadline passed (sync): still searching after 2 s"


def test_a_default_scheduler_that_is_missing_is_named(faulty_host: Host) -> None:
    report = check_plugin(faulty_host, "faulty-scheduler")
    failed = {o.check: o.reason for o in report.outcomes if o.status == "failed"}
    assert "unknown scheduler '1f1q' (did you mean '1f1b'?" in failed["metadata"]


def test_a_planner_that_crashes_fails_wherever_it_is_called_and_costs_no_more(faulty_host: Host) -> None:
    report = check_plugin(faulty_host, "faulty-crash")
    failed = {o.check: o.reason for o in report.outcomes if o.status == "failed"}
    assert {"validity-tiny", "infeasible", "pins", "deadline"} <= failed.keys()
    assert "KeyError" in failed["validity-tiny"]
