"""Whatever a planner does, its trial ends in one row with a status from the closed list."""

from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from pipebench.algorithms.micro_batches import micro_batch_notices
from pipebench.bench.components import ready_planner
from pipebench.bench.machine.time_limits import LimitReached
from pipebench.bench.ordering.choice import OrderFailure
from pipebench.bench.row_bounds import SUITE
from pipebench.bench.trials import trial as trial_module
from pipebench.bench.trials.trial import Searches, Trial, proven_words, run_trial
from pipebench.bounds import CLASS, PLAIN, ClassBound, time_bound
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster, stages_plan

HOST = Host()
SYNC_ONLY = """
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan, Stage

def plan(problem, context):
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("sync only")
    return Plan(stages=tuple(Stage(operators=(f"op{i}",), devices=(i,), micro_batch=1) for i in range(2)))
"""
NEVER = """
def plan(problem, context):
    raise UnsupportedProblem("not today")
"""
MEMORY = 1000
PROBLEM = chain_problem(
    [10, 10],
    [20, 20],
    cluster(2, memory=MEMORY),
    activations=[5, 6, 0],
    weights=[7, 8],
    mode="sync",
    mini_batch=4,
    pins=Pins(micro_batch=1),
)
TWO_STAGES = stages_plan([[0], [1]])


def outcome(call: Any, **trial: Any) -> Any:
    return run_trial(HOST, Trial(workload=workload(PROBLEM), regime="sync", planner=planner(call), **trial))


def test_an_honest_plan_is_scored_by_the_suite() -> None:
    row = outcome(lambda problem, context: PlanResult(plan=TWO_STAGES, claimed_s=1e-12), scheduler="1f1b").row
    assert (row.status, row.scheduler, row.named_scheduler) == ("ok", "1f1b", "1f1b")
    assert row.verdict == "valid"
    # 1F1B with two equal stages: (m + S - 1)(f + b) = 150 ns, and the 6 ns tensor and gradient on the
    # critical path: before the second stage can start and after its last backward, at least.
    assert row.simulated_s is not None
    assert row.simulated_s * 1e9 >= 150 + 2 * 6
    assert row.claimed_s == 1e-12
    assert row.throughput == pytest.approx(4 / row.simulated_s)
    assert row.bound_s is not None
    assert row.bound_s <= row.simulated_s
    assert row.gap == pytest.approx((row.simulated_s - row.bound_s) / row.bound_s)
    assert (row.stages, row.depth, row.micro_batch, row.replicas) == (2, 2, (1, 1), (1, 1))
    # first stage: 2 x 7 bytes of weights and gradient, two live micro-batches of 5, and 2 x 6 for the tensor
    assert row.peak_memory_bytes[0] == 14 + 2 * 5 + 12


def test_a_bare_plan_is_accepted() -> None:
    assert outcome(lambda problem, context: TWO_STAGES).row.status == "ok"


def raising(error: BaseException) -> Any:
    def plan(problem: Any, context: Any) -> Any:
        raise error

    return plan


def half_a_plan(problem: Any, context: Any) -> Plan:
    return Plan(stages=(Stage(operators=("op0",), devices=(0,), micro_batch=1),))


def no_such_operator(problem: Any, context: Any) -> Plan:
    return Plan(stages=(Stage(operators=("op0", "op1", "op9"), devices=(0,), micro_batch=1),))


@pytest.mark.parametrize(
    ("call", "status", "reason"),
    [
        (raising(ValueError("oops")), "crashed", "ValueError: oops"),
        (raising(InfeasibleProblem("too big")), "infeasible", "too big"),
        (raising(UnsupportedProblem("chains only")), "unsupported", "chains only"),
        (raising(SystemExit(3)), "crashed", "SystemExit: 3"),
        (raising(MemoryError()), "memory", "out of memory"),
        (raising(RecursionError("deep")), "crashed", "RecursionError"),
        (lambda problem, context: None, "crashed", "returned NoneType, not a PlanResult"),
        (half_a_plan, "invalid_plan", "op1"),
        (no_such_operator, "invalid_plan", "op9"),
        (raising(DeadlineReached("late")), "timeout", " s of 30 s: late"),
    ],
)
def test_every_failure_is_a_row_with_its_reason(call: Any, status: str, reason: str) -> None:
    row = outcome(call, timeout_s=30.0).row
    assert row.status == status
    assert reason in row.reason
    assert "\n" not in row.reason
    assert row.simulated_s is None


def test_infeasible_rows_say_how_much_memory_would_do() -> None:
    """A planner that keeps both operators on one device needs 30 + 4 live x 11 bytes under GPipe."""

    def one_stage(problem: Any, context: Any) -> Plan:
        if problem.cluster.memory_bytes < 777:
            raise InfeasibleProblem("does not fit")
        return stages_plan([[0, 1]])

    small = chain_problem(
        [10, 10], [20, 20], cluster(2, memory=40), activations=[5, 6, 0], weights=[7, 8], mode="sync", mini_batch=4
    )
    trial = Trial(workload=workload(small), regime="sync", planner=planner(one_stage))
    row = run_trial(HOST, trial).row
    assert row.status == "infeasible"
    assert row.smallest_memory_bytes is not None
    assert 777 <= row.smallest_memory_bytes <= 777 * 1.01 + 1
    assert row.bound_memory_bytes is not None
    assert row.bound_memory_bytes <= 777
    assert (
        "does not fit; devices have 40 bytes, on devices of 777 bytes it has a plan, any plan needs" in row.reason
    )


def test_a_planner_that_says_what_it_needs_is_not_told_so_in_other_digits() -> None:
    def one_stage(problem: Any, context: Any) -> Plan:
        if problem.cluster.memory_bytes < 12_345:
            raise InfeasibleProblem("one stage needs 12345 bytes on a device")
        return stages_plan([[0, 1]])

    small = chain_problem(
        [10, 10], [20, 20], cluster(2, memory=40), activations=[5, 6, 0], weights=[7, 8], mode="sync", mini_batch=4
    )
    row = run_trial(HOST, Trial(workload=workload(small), regime="sync", planner=planner(one_stage))).row
    assert row.smallest_memory_bytes == 12_400
    assert row.reason.startswith("one stage needs 12345 bytes on a device; devices have 40 bytes, any plan needs")


def test_memory_is_not_the_reason_where_more_would_not_do() -> None:
    """A planner that refuses pins, say, and has no plan with more memory either."""
    row = outcome(raising(InfeasibleProblem("dp 3 does not divide 8 devices"))).row
    assert (row.status, row.reason) == ("infeasible", "dp 3 does not divide 8 devices")


def test_an_async_partition_may_run_in_sync_and_is_tagged() -> None:
    trial = Trial(
        workload=workload(PROBLEM),
        regime="sync",
        planner=planner(lambda problem, context: TWO_STAGES, regimes=("async",)),
    )
    row = run_trial(HOST, trial).row
    assert (row.status, row.adapted) == ("ok", True)
    assert row.scheduler in {"gpipe", "1f1b", "kfkb", "zb-h1", "greedy"}


def test_a_sync_partition_may_run_in_async_and_claims_nothing_there() -> None:
    claims = PlanResult(plan=TWO_STAGES, claimed_s=1.0, lower_bound_s=0.5, termination="optimal", notices=("so",))
    trial = Trial(workload=workload(PROBLEM), regime="async", planner=planner(lambda problem, context: claims))
    row = run_trial(HOST, trial).row
    assert (row.status, row.adapted) == ("ok", True)
    assert row.scheduler in {"1f1b*", "periodic-bnb"}
    assert (row.claimed_s, row.class_bound_by, row.termination) == (None, SUITE, "heuristic")
    assert "so" in row.notices


def test_what_a_planner_says_of_its_only_size_is_dropped_where_its_plan_runs_with_others() -> None:
    one_size = replace(PROBLEM, pins=Pins())

    def plans(problem: Problem, context: Any) -> PlanResult:
        return PlanResult(plan=TWO_STAGES, notices=micro_batch_notices(problem))

    for regime, said in (("async", True), ("sync", False)):
        trial = Trial(workload=workload(one_size), regime=regime, planner=planner(plans, regimes=("async",)))
        row = run_trial(HOST, trial).row
        assert any("the only one that was profiled" in text for text in row.notices) == said


def test_pins_that_a_plan_ignores_make_it_invalid() -> None:
    row = outcome(lambda problem, context: stages_plan([[0], [1]], micro_batch=2)).row
    assert row.status == "invalid_plan"
    assert "micro" in row.reason


def test_stdout_of_a_planner_does_not_reach_ours(capsys: pytest.CaptureFixture[str]) -> None:
    def noisy(problem: Any, context: Any) -> Plan:
        print("look at me")
        return TWO_STAGES

    assert outcome(noisy).row.status == "ok"
    assert capsys.readouterr().out == ""


def test_quality_is_the_same_from_run_to_run() -> None:
    first, second = (outcome(lambda problem, context: TWO_STAGES).row for _ in range(2))
    assert (first.simulated_s, first.plan_id, first.schedule_id) == (
        second.simulated_s,
        second.plan_id,
        second.schedule_id,
    )


def test_a_file_that_refuses_a_regime_is_adapted_from_the_other(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SYNC_ONLY)
    ready = ready_planner(HOST, parse_reference(str(script)))
    rows = [run_trial(HOST, Trial(workload(PROBLEM), regime, ready)).row for regime in ("sync", "async")]
    assert [(row.status, row.adapted) for row in rows] == [("ok", False), ("ok", True)]
    script.write_text("from pipebench.domain.errors import UnsupportedProblem\n" + NEVER)
    never = ready_planner(HOST, parse_reference(str(script)))
    row = run_trial(HOST, Trial(workload(PROBLEM), "async", never)).row
    assert (row.status, row.adapted, row.reason) == ("unsupported", False, "not today")


def test_a_planner_of_one_regime_is_asked_once_for_both() -> None:
    asked = []

    def once(problem: Any, context: Any) -> Plan:
        asked.append(problem.regime.mode)
        return TWO_STAGES

    ready, searches = planner(once, regimes=("async",)), Searches()
    trials = [Trial(workload(PROBLEM), regime, ready, repeat=0) for regime in ("sync", "async")]
    first, second = (run_trial(HOST, trial, searches).row for trial in trials)
    assert asked == ["async"]
    assert (first.adapted, second.adapted) == (True, False)
    assert first.search_cpu_s == second.search_cpu_s


def test_a_plan_that_no_scheduler_orders_in_time_says_whose_time_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    late = OrderFailure("timeout", "no schedule within 10 s", "slow")
    monkeypatch.setattr(trial_module, "order_plan", lambda *_, **__: late)
    row = outcome(lambda problem, context: TWO_STAGES).row
    assert (row.status, row.reason, row.scheduler) == ("timeout", "no schedule within 10 s", "slow")
    assert row.search_cpu_s is not None


def test_a_row_has_the_bound_over_the_class_of_its_plan() -> None:
    """Two stages in a row: the suite's bound is above that over every plan, unless the planner proved more."""
    row = outcome(lambda problem, context: TWO_STAGES).row
    assert (row.status, row.class_bound_by, row.class_bound_scope) == ("ok", SUITE, f"{CLASS}, {PLAIN}")
    assert row.class_bound_kind in ("memory", "messages", "pipeline")
    assert row.class_bound_recomputes is False
    assert row.bound_s is not None
    assert row.class_bound_s is not None
    assert row.simulated_s is not None
    assert row.bound_s <= row.class_bound_s <= row.simulated_s
    proven = PlanResult(plan=TWO_STAGES, lower_bound_s=row.simulated_s, bound_scope="mine", termination="optimal")
    row = outcome(lambda problem, context: proven).row
    assert (row.class_bound_s, row.class_bound_scope, row.class_bound_kind) == (row.simulated_s, "mine", None)
    assert row.class_bound_by == row.planner
    assert row.class_bound_recomputes is None


def test_bounds_that_take_too_long_are_left_out_and_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> NoReturn:
        raise LimitReached("bounding took more than 300 s")

    monkeypatch.setattr("pipebench.bench.row_bounds.time_bound", slow)
    monkeypatch.setattr("pipebench.bench.row_bounds.class_bound", slow)
    row = outcome(lambda problem, context: TWO_STAGES).row
    assert (row.status, row.bound_s, row.gap, row.class_bound_s) == ("ok", None, None, None)
    assert "no proven bound: bounding took more than 300 s" in row.notices
    assert "no bound over stages in a row: bounding took more than 300 s" in row.notices


def test_trials_of_one_problem_have_their_bounds_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def counted(problem: Problem, split: bool = False) -> Any:
        asked.append(split)
        return time_bound(problem, split)

    monkeypatch.setattr("pipebench.bench.row_bounds.time_bound", counted)
    searches, given = Searches(), workload(PROBLEM)
    rows = [
        run_trial(HOST, Trial(workload=given, regime="sync", planner=planner(call)), searches).row
        for call in (lambda problem, context: TWO_STAGES, lambda problem, context: stages_plan([[0, 1]]))
    ]
    assert asked == [False]
    assert [row.bound_s for row in rows] == [time_bound(PROBLEM).value] * 2


def test_a_plan_below_the_bound_over_its_class_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipebench.bench.row_bounds.class_bound", lambda *_: ClassBound(10**12, "pipeline"))
    row = outcome(lambda problem, context: TWO_STAGES).row
    assert row.status == "invalid_plan"
    assert "is below the bound of 1000 s over plans of its class" in row.reason


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (0, ""),
        (2_500_000_000, ", any plan needs 2.50 GB"),
        (1_000_000_000, ", any plan needs 1.00 GB"),
        (2_200_000_512, ", any plan needs 512 bytes more"),
        (2_199_999_000, ""),
    ],
)
def test_what_any_plan_needs_is_told_apart_from_the_memory(needed: int, said: str) -> None:
    assert proven_words(needed, 2_200_000_000) == said
