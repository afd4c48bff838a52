"""Timing trials of one machine exclude each other; parallel ones exclude timing trials only."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from pipebench.bench.components import ready_planner
from pipebench.bench.sweeps import sweep
from pipebench.bench.sweeps.run_plan import RunPlan
from pipebench.bench.sweeps.sweep import Where, machine_shared, machine_to_itself
from pipebench.bench.trials.trial import Trial
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.bench.searches.isolation.scripts import HOST, PROBLEM

HOLD = """
import sys, time
from pipebench.bench.sweeps.sweep import machine_shared, machine_to_itself
with {how}():
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(how: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("{how}", how)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_timing_trial_waits_and_then_says_that_it_is_not_alone() -> None:
    for how in ("machine_to_itself", "machine_shared"):
        with holder(how) as other:
            began = time.monotonic()
            with machine_to_itself(patience_s=0.2) as alone:
                assert not alone
            assert time.monotonic() - began >= 0.2
            other.communicate("go\n")
        with machine_to_itself(patience_s=0.2) as alone:
            assert alone


def test_parallel_runs_do_not_exclude_each_other() -> None:
    with holder("machine_shared") as other:
        began = time.monotonic()
        with machine_shared():
            assert time.monotonic() - began < 5
        other.communicate("go\n")


def test_a_trial_that_ends_makes_room_for_one_that_waits() -> None:
    with holder("machine_to_itself") as other:
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
        with machine_to_itself(patience_s=20) as alone:
            assert alone


def patience_of(run: RunPlan, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a sweep waits each time that it wants a machine that is never free."""
    patience: list[float] = []

    @contextlib.contextmanager
    def never_free(patience_s: float, waiting: object = None) -> Iterator[bool]:
        patience.append(patience_s)
        yield False

    monkeypatch.setattr(sweep, "machine_to_itself", never_free)
    list(sweep.run_trials(HOST, run, Where(patience_s=7.0)))
    return patience


def test_a_sweep_waits_once_for_a_machine_that_does_not_become_free(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(workload(PROBLEM), "sync", ready_planner(HOST, parse_reference("uniform")), repeat=0)
    assert patience_of(RunPlan([trial, trial], [0, 1]), monkeypatch) == [7.0, 0.0, 0.0]


def test_a_sweep_with_nothing_to_run_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert patience_of(RunPlan([], []), monkeypatch) == []
