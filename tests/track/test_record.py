"""Nights as they are measured, with planners in this process; a worse plan is flagged the first night."""

import gc
import io
import os
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipebench.bench.trials.comparison import Request
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins
from pipebench.domain.result import PlanResult
from pipebench.hooks.discovery import Provider, Trouble
from pipebench.hooks.manager import Host
from pipebench.report.tracking.reports import night_report
from pipebench.report.tracking.writers import markdown_report, print_report
from pipebench.track.judgement.judgement import Judgement, judge
from pipebench.track.measurement.benchmark_json import BenchmarkFile
from pipebench.track.measurement.measurement import Measurement
from pipebench.track.measurement.record import prepare, record
from pipebench.track.nights.conditions import this_machine
from pipebench.track.nights.history import History, add_night, open_history
from pipebench.track.nights.night import Benchmark, Night
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster, stages_plan
from tests.track.made_nights import night as made_night

HOST = Host()


@pytest.fixture(autouse=True, scope="module")
def quick_collections() -> None:
    """Searches in this process collect garbage before each: what the first one made need not be looked at."""
    Measurement(HOST, request(of(GOOD)), 60.0).first_pass()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipebench.track.measurement.ratios.MOST_ROUNDS", 6)


PROBLEM = chain_problem(
    [10**6, 1, 10**6 - 1],
    [10**6, 1, 10**6 - 1],
    cluster(2),
    activations=[1, 1, 1, 0],
    mini_batch=4,
    pins=Pins(micro_batch=1),
    mode="sync",
)
GOOD, WORSE = stages_plan([[0], [1, 2]]), stages_plan([[0, 1], [2]])


def request(*calls: Any) -> Request:
    planners = [planner(call, name=f"mine{number or ''}") for number, call in enumerate(calls)]
    return Request(workloads=[workload(PROBLEM)], planners=planners, schedulers=("1f1b",))


def of(plan: Plan) -> Any:
    """A planner that always returns it, after some work."""

    def call(problem: Any, context: Any) -> PlanResult:
        context.count("states", sum(range(20_000)) % 7 + 1)
        return PlanResult(plan=plan)

    return call


def recorded(folder: Path, *calls: Any, budget_s: float = 60.0) -> Night:
    history = prepare(folder, datetime.now(UTC))
    return record(HOST, request(*calls), history, budget_s, revision="abc")


def text_report(judgement: Judgement) -> str:
    """As a terminal shows it."""
    console = Console(file=io.StringIO(), width=200)
    print_report(console, night_report(judgement))
    printed = console.file
    assert isinstance(printed, io.StringIO)
    return printed.getvalue()


def test_a_night_has_exact_columns_ratios_and_an_a_a_pair(tmp_path: Path) -> None:
    night = recorded(tmp_path, of(GOOD))
    found = night.measured[0]
    assert (found.exact["status"], found.exact["work.states"], found.exact["stages"]) == ("ok", 1, 2)
    assert found.paired is not None
    assert found.twin is not None
    twin = found.twin
    assert len(twin.rounds["interpreter"]) + twin.discarded >= 5  # a busy machine costs rounds
    assert found.again is None
    assert found.information["search_wall_s"] > 0
    assert (night.revision, night.notices) == ("abc", ())
    assert open_history(tmp_path).nights[0].night == night


def test_a_plan_worse_by_a_millionth_is_flagged_the_first_night_with_what_moved(tmp_path: Path) -> None:
    recorded(tmp_path, of(GOOD))
    recorded(tmp_path, of(WORSE))
    judgement = judge(open_history(tmp_path))
    event = judgement.events[0]
    change = {each.name: each for each in event.columns}["simulated_ns"]
    assert isinstance(change.before, int)
    assert isinstance(change.after, int)
    assert 0 < change.after - change.before <= 2e-6 * change.before
    assert (judgement.verdict, event.outcome) == ("worse", "worse")
    text = markdown_report(night_report(judgement))
    assert "moved: 1 -\\> 0, 1 operator: op1" in text
    assert "ppm" in text


def test_a_night_after_the_same_night_is_steady(tmp_path: Path) -> None:
    for _ in range(2):
        recorded(tmp_path, of(GOOD))
    assert judge(open_history(tmp_path)).events == ()


def test_a_planner_that_does_not_repeat_itself_is_said_and_not_judged(tmp_path: Path) -> None:
    count = iter(range(10**6))

    def restless(problem: Any, context: Any) -> PlanResult:
        context.count("states", next(count) + 1)
        return PlanResult(plan=GOOD)

    for _ in range(2):
        night = recorded(tmp_path, restless)
    assert night.measured[0].unsteady == ("work.states",)
    assert "two runs of this night differ in work.states" in night.notices[0]
    assert judge(open_history(tmp_path)).events == ()


def broken(problem: Any, context: Any) -> PlanResult:
    raise ValueError("boom")


def test_a_crash_is_a_worsening_with_its_reason(tmp_path: Path) -> None:
    recorded(tmp_path, of(GOOD))
    recorded(tmp_path, broken)
    judgement = judge(open_history(tmp_path))
    assert judgement.verdict == "worse"
    text = text_report(judgement)
    assert re.search(r"\(open\): status ok -> crashed \(.*boom.*\)\n", text), text
    assert "-> none" not in text


def test_the_reason_of_a_crash_is_not_compared(tmp_path: Path) -> None:
    count = iter(range(10**6))

    def restless(problem: Any, context: Any) -> PlanResult:
        raise ValueError(f"at {next(count)}")

    nights = [recorded(tmp_path, restless) for _ in range(2)]
    assert nights[0].measured[0].reason != nights[1].measured[0].reason
    assert judge(open_history(tmp_path)).events == ()


def test_a_planner_that_crashes_from_its_first_night_is_named(tmp_path: Path) -> None:
    recorded(tmp_path / "alone", broken)
    alone = judge(open_history(tmp_path / "alone"))
    assert (alone.verdict, alone.exit_code) == ("nothing measured", ExitCode.NOTHING_RAN)
    recorded(tmp_path / "beside", of(GOOD), broken)
    beside = judge(open_history(tmp_path / "beside"))
    assert beside.exit_code == ExitCode.OK
    for judgement in (alone, beside):
        assert re.search(r"\n  mine1? with 1f1b on .*: crashed: .*boom", text_report(judgement))


def test_a_plugin_that_is_left_out_stands_in_the_night(tmp_path: Path) -> None:
    host = Host()
    host.troubles = [
        Trouble(Provider("mine", "1.0", "mine"), "plugin", "ModuleNotFoundError: No module named 'x'")
    ]
    record(host, request(of(GOOD)), prepare(tmp_path, datetime.now(UTC)), 60.0)
    (notice,) = judge(open_history(tmp_path)).notices
    assert notice == "plugin mine 1.0 (mine) is left out: ModuleNotFoundError: No module named 'x'"


def test_a_budget_of_nothing_says_what_did_not_run(tmp_path: Path) -> None:
    night = recorded(tmp_path, of(GOOD), of(GOOD), budget_s=1e-9)
    assert night.measured == ()
    assert "the budget ended before these ran: mine with 1f1b on" in night.notices[0]
    assert judge(open_history(tmp_path)).verdict == "nothing measured"


def test_what_is_suspicious_is_measured_again_in_processes_of_its_own() -> None:
    measurement = Measurement(HOST, request(of(GOOD), of(GOOD)), budget_s=600.0)
    measurement.first_pass()
    measurement.confirm(lambda each: each.subject.planner == "mine1")
    quiet, again = measurement.subject_nights()
    assert quiet.again is None
    assert again.again is not None
    assert len(again.again.rounds["interpreter"]) >= 5


def test_a_clock_behind_the_last_night_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    recorded(tmp_path, of(GOOD))
    now = datetime.now(UTC)
    with pytest.raises(PipebenchError, match="two clocks disagree"):
        prepare(tmp_path, now - timedelta(days=1))
    # Nights that end in one second are dated ahead of it.
    assert len(prepare(tmp_path, now - timedelta(seconds=5)).nights) == 1


def test_benchmarks_are_imported_once(tmp_path: Path) -> None:
    imported = BenchmarkFile(
        (Benchmark(name="b", seconds={"min": 1.0, "median": 1.0}, counters={"n": 1}),), "2026-01-01T00:00:00+00:00"
    )
    done = record(HOST, None, prepare(tmp_path, datetime.now(UTC), imported), 1.0, imported=imported)
    assert (done.benchmarks, done.measured) == (imported.benchmarks, ())
    assert open_history(tmp_path).file == tmp_path / "nights.jsonl"
    assert judge(open_history(tmp_path)).verdict == "steady"
    with pytest.raises(PipebenchError, match="in the history already"):
        prepare(tmp_path, datetime.now(UTC), imported)
    opened = History(tmp_path)  # as another import saw it that began before this one ended
    with pytest.raises(PipebenchError, match="in the history already"):
        record(HOST, None, opened, 1.0, imported=imported)
    night = record(HOST, request(of(GOOD)), opened, 60.0, imported=imported)
    assert (night.benchmarks, len(night.measured)) == ((), 1)
    assert any("in the history already" in notice for notice in night.notices)
    assert len(open_history(tmp_path).nights) == 2


@pytest.mark.parametrize("failure", [PipebenchError("the disk is full"), KeyboardInterrupt()])
def test_a_measurement_that_ends_early_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def rounds(self: Measurement) -> None:
        raise failure

    monkeypatch.setattr(Measurement, "rounds", rounds)
    imported = BenchmarkFile(
        (Benchmark(name="b", seconds={"min": 1.0, "median": 1.0}),), "2026-01-01T00:00:00+00:00"
    )
    with pytest.raises(type(failure)):
        record(HOST, request(of(GOOD)), prepare(tmp_path, datetime.now(UTC)), 60.0, imported=imported)
    night = open_history(tmp_path).nights[0].night
    assert (len(night.measured), len(night.benchmarks)) == (1, 1)
    assert night.measured[0].exact["status"] == "ok"
    assert night.notices == (f"the measurement ended early: {str(failure) or 'interrupted'}",)


@pytest.mark.parametrize("request_to_end", [signal.SIGTERM, signal.SIGHUP])
def test_a_night_that_is_asked_to_end_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_to_end: signal.Signals
) -> None:
    """As a time limit, a scheduler or a closed terminal ask; who ignores it (nohup) goes on ignoring it."""

    def rounds(self: Measurement) -> None:
        assert signal.getsignal(request_to_end) is not signal.SIG_DFL  # else this process would end
        os.kill(os.getpid(), request_to_end)

    monkeypatch.setattr(Measurement, "rounds", rounds)
    before = signal.signal(request_to_end, signal.SIG_DFL)  # the tests may run under nohup
    try:
        with pytest.raises(KeyboardInterrupt):
            record(HOST, request(of(GOOD)), prepare(tmp_path, datetime.now(UTC)), 60.0)
        assert signal.getsignal(request_to_end) is signal.SIG_DFL
    finally:
        signal.signal(request_to_end, before)
    night = open_history(tmp_path).nights[0].night
    assert (len(night.measured), night.notices) == (1, ("the measurement ended early: interrupted",))
    before = signal.signal(request_to_end, signal.SIG_IGN)
    try:
        record(HOST, request(of(GOOD)), prepare(tmp_path, datetime.now(UTC)), 60.0)
    finally:
        signal.signal(request_to_end, before)


def test_a_clock_that_is_set_back_while_a_night_runs_costs_no_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = timedelta(hours=1)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - hour

    add_night(tmp_path, this_machine(), made_night(0, recorded_at=datetime.now(UTC).isoformat()))
    opened = prepare(tmp_path, datetime.now(UTC))
    monkeypatch.setattr("pipebench.track.measurement.record.datetime", Earlier)
    imported = BenchmarkFile(
        (Benchmark(name="b", seconds={"min": 1.0, "median": 1.0}),), "2026-01-01T00:00:00+00:00"
    )
    record(HOST, None, opened, 60.0, imported=imported)
    first, second = (each.night for each in open_history(tmp_path).nights)
    assert timedelta(0) < second.at - first.at <= timedelta(seconds=1)
    assert second.benchmarks == imported.benchmarks
    assert "the clock went back to" in second.notices[0]
