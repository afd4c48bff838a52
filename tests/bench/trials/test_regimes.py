"""Whom a comparison runs, and in which regimes."""

from dataclasses import replace
from typing import Any

import pytest

from pipebench.bench.problems.workload import Workload
from pipebench.bench.suites import Settings
from pipebench.bench.trials.comparison import Request, comparison_request, trials
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.hooks.manager import Host
from tests.bench.ready import planner, workload
from tests.bench.searches.isolation.scripts import PROBLEM

ASYNC_ONLY: tuple[RegimeMode, ...] = ("async",)


@pytest.mark.parametrize(
    ("asked", "plugin", "elsewhere"),
    [
        ({}, ["sync", "async"], ["async"]),
        ({"regimes": ("sync",)}, ["sync"], ["sync"]),
        ({"own_regimes": "first"}, ["async"], ["async"]),
        ({"own_regimes": "all"}, ["async"], ["async"]),
        ({"schedulers": ("a",), "scheduler_regimes": {"a": "sync"}}, ["sync"], ["sync"]),
        (
            {"schedulers": ("a", "b"), "scheduler_regimes": {"a": "async", "b": "sync"}},
            ["sync", "async"],
            ["sync", "async"],
        ),
        (
            {"regimes": ("async",), "schedulers": ("b",), "scheduler_regimes": {"b": "sync"}},
            ["async"],
            ["async"],
        ),
    ],
)
def test_nobody_is_left_out(asked: dict[str, Any], plugin: list[str], elsewhere: list[str]) -> None:
    """A plugin's planner of one regime, and a plan that was made elsewhere for that one."""
    made = planner(lambda problem, context: None, regimes=ASYNC_ONLY)
    for ready, expected in ((replace(made, here=False), plugin), (made, elsewhere)):
        listed = trials(Request(workloads=[workload(PROBLEM)], planners=[ready], **asked))
        assert [trial.regime for trial in listed] == expected
        named = asked.get("scheduler_regimes", {})
        if not asked.get("regimes"):
            assert all(trial.scheduler is None or named[trial.scheduler] == trial.regime for trial in listed)


@pytest.mark.parametrize(
    "wrong",
    [
        Settings(planners=("madpip",)),
        Settings(planners=("uniform",), schedulers=("1f1",)),
        Settings(planners=("uniform",), executors=("simulat",)),
    ],
)
def test_names_are_looked_at_before_workloads_are_read(wrong: Settings) -> None:
    def read() -> list[Workload]:
        raise AssertionError("workloads are read")

    with pytest.raises(PipebenchError, match=r"unknown (planner|scheduler|executor) "):
        comparison_request(Host(), read, wrong)
