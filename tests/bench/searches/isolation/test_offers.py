"""A search that is ended from outside leaves the best plan that it has offered."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipebench.bench.searches import perform
from pipebench.bench.searches.isolation.child import Channel
from pipebench.bench.searches.request import Progress, Start
from pipebench.bench.trials.trial import COLD
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult
from tests.bench.searches.isolation.scripts import HONEST, run

SEARCHING = (
    HONEST
    + """
import os, time
from pipebench.domain.result import PlanResult

found = plan

def plan(problem, context):
    if problem.cluster.memory_bytes != 1000:  # a toy problem
        return found(problem, context)
"""
)
"""The beginning of a planner whose search is of the problem itself."""
OFFERING = (
    SEARCHING
    + """
    context.offer(PlanResult(plan=found(problem, context), notices=("halfway",)))
    context.report(0.5, "half of it")
    {end}
"""
)
LISTENING: dict[str, Any] = {"start": Start(progress=True), "repeat": 0, "timeout_s": 0.4}


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("time.sleep(60)", "no plan within 0.4 s"),
        pytest.param("os.kill(os.getpid(), 9)", "its process was killed by SIGKILL", marks=pytest.mark.nightly),
        ("raise ValueError('oh')", "ValueError: oh"),
    ],
)
def test_what_it_offered_counts_when_it_is_ended(tmp_path: Path, end: str, why: str) -> None:
    row = run(tmp_path, OFFERING.replace("{end}", end), heard=lambda _: None, **LISTENING).row
    assert (row.status, row.verdict, row.termination) == ("ok", "valid", "limit")
    assert row.simulated_s is not None
    assert "halfway" in row.notices
    assert any("ended from outside" in line and why in line for line in row.notices)


def test_what_it_returns_counts_more_than_what_it_offered(tmp_path: Path) -> None:
    end = "return found(problem, context)"
    row = run(tmp_path, OFFERING.replace("{end}", end), heard=lambda _: None, **LISTENING).row
    assert row.status == "ok"
    assert "halfway" not in row.notices


def test_in_a_comparison_nothing_is_offered(tmp_path: Path) -> None:
    row = run(tmp_path, OFFERING.replace("{end}", "time.sleep(60)"), timeout_s=0.4).row
    assert row.status == "timeout"


def test_the_seconds_of_a_search_that_is_ended_are_not_those_of_its_last_words(tmp_path: Path) -> None:
    talking = SEARCHING + '    context.report(0.1, "begun")\n    time.sleep(60)\n'
    row = run(tmp_path, talking, heard=lambda _: None, **LISTENING).row
    assert (row.status, row.reason) == ("timeout", "no plan within 0.4 s")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's handler, which is not there when the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_search_and_keeps_what_it_offered(tmp_path: Path) -> None:
    listening = LISTENING | {"timeout_s": 60.0}
    end = "time.sleep(60)"
    row = run(
        tmp_path,
        OFFERING.replace("{end}", f"time.sleep(0.3); context.report(0.6, 'more'); {end}"),
        heard=lambda _: os.kill(os.getpid(), signal.SIGINT),
        **listening,
    ).row
    assert row.status == "ok"
    assert any("ended from outside (interrupted)" in line for line in row.notices)
    assert (row.search_cpu_s, row.search_wall_s, row.search_cold_s) == (None, None, None)
    assert COLD not in row.notices
    assert run(tmp_path, HONEST).row.status == "ok"


class Clock:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


class Heard(Channel):
    def __init__(self) -> None:
        self.sent: list[Progress] = []

    def progress(self, payload: bytes) -> None:
        self.sent.append(msgspec.msgpack.decode(payload, type=Progress))


def test_plans_are_sent_once_a_second_at_most_and_the_last_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, channel = Clock(), Heard()
    monkeypatch.setattr(perform, "time", clock)
    teller = perform._Teller(channel)
    plan = Plan(stages=(Stage(operators=("op0",), devices=(0,), micro_batch=1),))
    first, second, third = (PlanResult(plan=plan, claimed_s=float(number)) for number in range(3))
    teller.offer(first)
    teller.offer(second)
    clock.now_s += 0.5
    teller.offer(third)
    teller.report(0.5, "on the way")
    assert [each.result for each in channel.sent] == [first, None]
    clock.now_s += 0.6
    teller.report(0.6, "and on")
    assert channel.sent[-1].result == third
    clock.now_s += 5.0
    teller.report(0.7, "and on")
    assert channel.sent[-1] == Progress(done=0.7, message="and on")
