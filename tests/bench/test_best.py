"""The best plan of all planners."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace as replace_trial
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench import best as best_module
from pipebench.bench import row_bounds
from pipebench.bench.best import STARTS, best
from pipebench.bench.problems.workload import Workload
from pipebench.bench.trials.trial import Outcome, Searches, Trial, run_trial
from pipebench.bounds import TimeBound, time_bound
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import StepCosts
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.row import Status
from pipebench.formats.frameworks.targets import TARGETS
from pipebench.hooks.manager import Host
from tests.language_models import TINY, problem
from tests.report.rows import row

HOST = Host()
STALL = 100
"""Plans without a better one after which the search ends here: its own limit takes the whole time."""


@pytest.fixture(autouse=True)
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_module, "MOST_STALL", STALL)


def workload(pins: Pins, memory_bytes: int | None = None) -> Workload:
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    cluster = made.cluster
    if memory_bytes is not None:
        cluster = replace(cluster, types=tuple(replace(kind, memory_bytes=memory_bytes) for kind in cluster.types))
    regime = Regime(mode="sync", precision=made.profile.precision, optimizer="adam")
    return Workload("tiny", replace(made, cluster=cluster, regime=regime))


def test_the_search_gets_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """And hardly any of the user's time goes to toy problems."""
    given: dict[str, int] = {}
    toys_s: set[float] = set()

    def noted(host: Host, trial: Trial, *rest: Any, **named: Any) -> Outcome:
        given[trial.planner.label.partition("[")[0]] = trial.start.bound_ns
        toys_s.add(trial.searcher("sync").toy_s)
        return run_trial(host, trial, *rest, **named)

    monkeypatch.setattr(best_module, "run_trial", noted)
    pinned = workload(Pins(tensor_parallel=2, pipeline=2))
    best(Few(), pinned, timeout_s=20)
    assert given.pop("local-search") == time_bound(pinned.problem("sync")).ns
    assert set(given.values()) == {0}
    assert toys_s == {best_module.SHORT_TOY_S}


@pytest.mark.timeout(method="thread")  # the alarm of the process is the limit's
def test_a_plan_that_takes_long_to_score_leaves_the_search_its_half(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, float] = {}

    def slow(host: Host, trial: Trial, searches: Searches) -> Outcome:
        given[trial.planner.label.partition("[")[0]] = trial.timeout_s
        outcome = run_trial(host, trial, searches)
        if trial.planner.label == "uniform":
            time.sleep(30)
        return outcome

    monkeypatch.setattr(best_module, "run_trial", slow)
    found = best(Few("uniform"), workload(Pins()), timeout_s=12)
    (uniform,) = (entry for entry in found.entries if entry.planner == "uniform")
    assert re.match(
        r"timeout: finding its plan and scoring it took more than \d\.?\d? s \(take fewer micro-batches",
        uniform.reason,
    )
    assert 4 < given["local-search"] < 6
    assert {entry.planner for entry in found.ranked} == {"layout", "local-search"}


def test_the_bound_is_sought_once_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[str] = []

    def bound(problem: Problem, split: bool = False) -> TimeBound:
        sought.append(problem.problem_id)
        return time_bound(problem, split)

    monkeypatch.setattr(row_bounds, "time_bound", bound)
    found = best(Few(), workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=20)
    assert len(sought) == 1
    assert len({entry.row.bound_s for entry in found.ranked if entry.row}) == 1


@pytest.mark.nightly
def test_the_search_goes_on_from_the_fastest_and_all_say_why_they_lost() -> None:
    told: list[str] = []
    solved: list[str] = []
    pinned = workload(Pins(tensor_parallel=2, pipeline=2))
    found = best(HOST, pinned, timeout_s=90, told=told.append, solved=solved.append)
    times = [entry.row.simulated_s for entry in found.ranked if entry.row]
    assert times == sorted(times)
    assert [entry.planner for entry in found.ranked][:2] == ["local-search", "layout"]
    assert {entry.planner for entry in found.entries} == set(HOST.slot("planners"))
    reasons = {entry.planner: entry.reason for entry in found.entries}
    assert reasons["pipedream"] == "it has no tensor parallelism, which is pinned"
    assert "unsupported" in reasons["piper"]
    assert "pipedream" not in told
    text = "\n".join(found.why)
    assert "winner: local-search" in text
    assert "runner-up: layout" in text
    assert (
        f"search ended: local optimum, {STALL} plans from each of {STARTS} starts in a row brought no better one"
        in text
    )
    assert "search improved on " in text
    assert solved[0].startswith("layout: best ")
    assert all("bound" in line and "gap" in line for line in solved)


def test_kernels_are_compiled_before_the_time_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every planner that may run, and of the search; planners that cannot plan it are left out."""
    done: list[str] = []

    def compile_slowly(host: Host, searches: Any, starting: Any) -> None:
        done.extend(planner.component.name for planner, _ in searches)
        starting(done)
        later = best_module.time.monotonic() + 100
        monkeypatch.setattr(best_module.time, "monotonic", lambda: later)

    monkeypatch.setattr(best_module, "compile_side_by_side", compile_slowly)
    heard: list[list[str]] = []
    found = best(
        HOST, workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=60, gap=1000.0, compiling=heard.append
    )
    assert heard == [done]
    assert {"layout", "uniform", "local-search"} <= set(done)
    assert "pipedream" not in done
    assert [entry.planner for entry in found.ranked] == ["layout"]


@pytest.mark.parametrize(("gain", "winner"), [(5e-5, "layout"), (1e-3, "local-search")])
def test_a_plan_of_more_stages_wins_only_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, gain: float, winner: str
) -> None:
    """One part in 10,000 is no reason to run more stages."""
    times: list[float] = []

    def nearly_as_fast(host: Host, trial: Trial, searches: Searches) -> Outcome:
        outcome = run_trial(host, trial, searches)
        assert outcome.row.simulated_s is not None
        if times:
            row = replace(outcome.row, simulated_s=times[0] * (1 - gain), stages=99)
            return replace_trial(outcome, row=row)
        times.append(outcome.row.simulated_s)
        return outcome

    monkeypatch.setattr(best_module, "run_trial", nearly_as_fast)
    monkeypatch.setattr(best_module, "MOST_STALL", 5)
    found = best(Few(), workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=60)
    assert found.ranked[0].planner == winner
    assert f"winner: {winner}" in found.why[0]


def test_the_gap_ends_planners_and_search() -> None:
    found = best(HOST, workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=30, gap=1000.0)
    assert [entry.planner for entry in found.ranked] == ["layout"]
    reasons = {entry.planner: entry.reason for entry in found.entries}
    assert reasons["uniform"] == reasons["local-search"] == "the gap of 100,000 % was reached before"


def test_a_plan_that_leaves_devices_idle_takes_part_only_where_it_may() -> None:
    two_of_four = workload(Pins(tensor_parallel=1, pipeline=2, data_parallel=1, micro_batch=1))
    assert best(Few(), two_of_four, timeout_s=30, gap=1000.0).winner.plan is not None
    with pytest.raises(PipebenchError, match=r"it uses 2 of 4 devices") as refused:
        best(Few(), two_of_four, timeout_s=30, gap=1000.0, whole=True)
    assert "--allow-idle" in str(refused.value.hint)


def test_with_a_target_the_search_keeps_to_what_it_can_express() -> None:
    target = TARGETS["deepspeed"]
    found = best(Few(), workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=20, target=target, whole=True)
    reasons = {entry.planner: entry.reason for entry in found.entries}
    assert reasons["local-search"] == ""
    assert all(
        target.refusal(e.outcome.problem, e.outcome.plan) == "" and e.outcome.row.scheduler in target.schedules
        for e in found.ranked
        if e.outcome and e.outcome.plan
    )


@pytest.mark.parametrize(("scheduler", "ordered"), [(None, "1f1b"), ("zb-h1", "zb-h1")])
def test_for_torchtitan_as_it_is_priced_backwards_are_whole(scheduler: str | None, ordered: str) -> None:
    """It runs no split ones with its usual attention. An order that the user names stands."""
    plain = workload(Pins(tensor_parallel=2, pipeline=2, virtual_stages=1))
    step = StepCosts(framework="torchtitan", optimizer_s_per_element=0.0)
    problem = replace(plain.base, regime=replace(plain.base.regime, step=step))
    priced = replace_trial(plain, base=problem)
    found = best(HOST, priced, timeout_s=60, target=TARGETS["torchtitan"], gap=1000.0, scheduler=scheduler)
    assert [entry.row.scheduler for entry in found.ranked if entry.row] == [ordered]


def test_nothing_fits() -> None:
    with pytest.raises(PipebenchError, match=r"no planner has a plan that fits: .*layout: infeasible") as raised:
        best(Few(), workload(Pins(tensor_parallel=2, pipeline=2), memory_bytes=10**6), timeout_s=60)
    assert "use more devices or memory" in raised.value.hint
    assert "--timeout" not in raised.value.hint


def test_no_time() -> None:
    with pytest.raises(PipebenchError, match=r"0\.5 s is too short: .*no time left of 0\.5 s") as raised:
        best(HOST, workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=0.5)
    assert raised.value.hint == "take a longer --timeout"


@pytest.mark.parametrize(
    ("statuses", "message", "hint"),
    [
        ({"layout": "timeout", "uniform": "timeout"}, "60 s is too short: ", "take a longer --timeout"),
        ({"layout": "timeout", "uniform": "unsupported"}, "60 s is too short: ", "take a longer --timeout"),
        (
            {"layout": "timeout", "uniform": "infeasible"},
            "no planner has a plan that fits: ",
            "take a longer --timeout; use more devices or memory, other pins, or --recompute full (or stage)",
        ),
        (
            {"layout": "timeout", "uniform": "crashed"},
            "no planner has a plan that fits: ",
            "take a longer --timeout",
        ),
        ({"layout": "crashed", "uniform": "unsupported"}, "no planner has a plan that fits: ", "use other pins"),
    ],
)
def test_advice_is_about_what_planners_lacked(
    monkeypatch: pytest.MonkeyPatch, statuses: dict[str, Status], message: str, hint: str
) -> None:
    def ended(host: Host, trial: Trial, searches: Searches) -> Outcome:
        status = statuses.get(trial.planner.label, "timeout" if "timeout" in statuses.values() else "unsupported")
        return Outcome(row(trial.planner.label, status=status), trial.workload.problem("sync"))

    monkeypatch.setattr(best_module, "run_trial", ended)
    with pytest.raises(PipebenchError, match=re.escape(message)) as raised:
        best(Few("uniform"), workload(Pins()), timeout_s=60)
    assert raised.value.hint == hint


class Few(Host):
    """A host with one planner and the search, or with more."""

    def __init__(self, *more: str) -> None:
        super().__init__()
        self._names = {"layout", "local-search", *more}

    def slot(self, name: str) -> Any:
        found = super().slot(name)  # type: ignore[arg-type]
        return {key: each for key, each in found.items() if name != "planners" or key in self._names}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's handler, which is not there when the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_the_search_leaves_the_best_plan_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(host: Host, trial: Trial, searches: Searches) -> Outcome:
        if trial.heard is not None:
            trial = replace_trial(trial, heard=lambda _: os.kill(os.getpid(), signal.SIGINT))
        return run_trial(host, trial, searches)

    monkeypatch.setattr(best_module, "LEAST_STALL", 10**6)
    monkeypatch.setattr(best_module, "MOST_STALL", 10**6)  # it tells of its progress after a second
    monkeypatch.setattr(best_module, "run_trial", interrupted)
    found = best(Few(), workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=60)
    search = next(entry for entry in found.entries if entry.planner == "local-search")
    assert search.row is not None
    assert search.row.status == "ok"
    assert "ended from outside (interrupted)" in "\n".join(found.why)
    assert found.winner.row.simulated_s == min(entry.row.simulated_s for entry in found.ranked if entry.row)  # type: ignore[type-var]


@pytest.mark.parametrize("when", ["layout", "local-search"])
def test_ctrl_c_before_the_search_has_a_plan(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    def interrupted(host: Host, trial: Trial, searches: Searches) -> Outcome:
        if trial.planner.component.name == when:
            raise KeyboardInterrupt
        return run_trial(host, trial, searches)

    monkeypatch.setattr(best_module, "run_trial", interrupted)
    pinned = workload(Pins(tensor_parallel=2, pipeline=2))
    if when == "layout":
        with pytest.raises(KeyboardInterrupt):
            best(Few(), pinned, timeout_s=60)
        return
    found = best(Few(), pinned, timeout_s=60)
    assert [entry.planner for entry in found.ranked] == ["layout"]
    assert "left out: local-search: interrupted" in found.why
