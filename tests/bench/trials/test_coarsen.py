"""A trial with --coarsen: the planner sees blocks, the suite scores operators, and the row says so."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.algorithms.coarse import BLOCK, COARSER
from pipebench.bench.store.keys import TrialInputs, trial_key
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.manager import Host
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster

HOST = Host()
PROBLEM = chain_problem(
    [10] * 12,
    [20] * 12,
    cluster(2, memory=1000),
    activations=[5] * 13,
    weights=[8] * 12,
    mode="sync",
    mini_batch=4,
)
SEEN: list[Problem] = []


def halves(problem: Problem, context: Any) -> PlanResult:
    """The first half of the operators and the second, on a device each."""
    SEEN.append(problem)
    graph = problem.profile.graph
    names = [graph.operators[op].name for op in graph.topological]
    half = len(names) // 2
    stages = tuple(
        Stage(operators=tuple(part), devices=(device,), micro_batch=1)
        for device, part in enumerate((names[:half], names[half:]))
    )
    return PlanResult(
        plan=Plan(stages=stages),
        claimed_s=7e-9,
        lower_bound_s=9e-7,
        bound_scope="halves",
        termination="optimal",
        notices=("its own",),
    )


def outcome(call: Any, problem: Problem = PROBLEM, **trial: Any) -> Outcome:
    return run_trial(HOST, Trial(workload=workload(problem), regime="sync", planner=planner(call), **trial))


def test_the_planner_sees_blocks_and_the_row_is_of_operators() -> None:
    SEEN.clear()
    made = outcome(halves, coarsen=4)
    assert [len(problem.profile.graph.operators) for problem in SEEN] == [4] * len(SEEN)
    assert all(op.kind == BLOCK for op in SEEN[0].profile.graph.operators)
    assert made.plan is not None
    assert [stage.operators for stage in made.plan.stages] == [
        tuple(f"op{i}" for i in range(6)),
        tuple(f"op{i}" for i in range(6, 12)),
    ]
    row = made.row
    assert (row.status, row.verdict, row.coarsen, row.claimed_s) == ("ok", "valid", 4, 7e-9)
    assert row.planned_by == "mine (4 blocks)"
    assert row.notices[:2] == (
        "planned on 4 blocks of 12 operators; to join them is not in the search time",
        "its own",
    )
    assert row.class_bound_scope == "halves; stages of whole blocks"


def test_the_problem_and_the_score_are_those_without_it() -> None:
    blocks, operators = outcome(halves, coarsen=4), outcome(halves)
    assert blocks.plan == operators.plan
    for name in (
        "problem_id",
        "simulated_s",
        "estimated_s",
        "bound_s",
        "peak_memory_bytes",
        "plan_id",
        "schedule_id",
    ):
        assert getattr(blocks.row, name) == getattr(operators.row, name)
    assert blocks.problem == operators.problem == PROBLEM


def test_more_blocks_than_operators_change_nothing() -> None:
    row, plain = outcome(halves, coarsen=12).row, outcome(halves).row
    untimed = [tuple(each for each in made.notices if "search used" not in each) for made in (row, plain)]
    assert untimed[0] == untimed[1] == ("its own",)  # a busy machine makes a first search long
    assert row.class_bound_scope == "halves"


def test_a_planner_that_splits_a_block_is_refused() -> None:
    def split(problem: Problem, context: Any) -> PlanResult:
        names = tuple(op.name for op in problem.profile.graph.operators)
        stage = Stage(
            operators=names,
            devices=(0, 1),
            tensor_parallel=2,
            micro_batch=2,
            sharding=({"batch": 2},) * len(names),
        )
        return PlanResult(plan=Plan(stages=(stage,)))

    row = outcome(split, coarsen=4).row
    assert (row.status, row.claimed_s) == ("unsupported", None)
    assert "cannot be" in row.reason
    assert "leave --coarsen out" in row.reason
    assert outcome(split).row.status == "ok"


def test_a_planner_for_which_the_blocks_are_too_many_is_shown_half_as_many() -> None:
    def small_only(problem: Problem, context: Any) -> PlanResult:
        count = len(problem.profile.graph.operators)
        if count > 3:
            raise UnsupportedProblem(f"mine takes 3 operators, these are {count}", COARSER)
        return halves(problem, context)

    row = outcome(small_only, coarsen=10).row
    assert (row.status, row.coarsen) == ("ok", 10)
    assert row.notices[:2] == (
        "planned on 2 blocks of 12 operators; to join them is not in the search time",
        "10 blocks are too many for it: mine takes 3 operators, these are 10",
    )
    assert outcome(small_only).row.reason.endswith(f"({COARSER})")


def test_a_planner_that_refuses_every_number_of_blocks_is_asked_no_more() -> None:
    asked: list[int] = []

    def never(problem: Problem, context: Any) -> PlanResult:
        asked.append(len(problem.profile.graph.operators))
        raise UnsupportedProblem("never", COARSER)

    assert outcome(never, coarsen=10).row.status == "unsupported"
    assert asked == [10, 5, 2, 1]


def test_the_memory_that_would_do_is_that_of_operators() -> None:
    """Half of the operators on a device hold 6 weights and gradients of 8 bytes, and what they save."""

    def if_it_fits(problem: Problem, context: Any) -> PlanResult:
        found = halves(problem, context)
        if problem.cluster.memory_bytes < 250:
            raise InfeasibleProblem("halves do not fit")
        return found

    tight = replace(PROBLEM, cluster=cluster(2, memory=100))
    blocks, operators = outcome(if_it_fits, tight, coarsen=4).row, outcome(if_it_fits, tight).row
    assert blocks.status == operators.status == "infeasible"
    assert blocks.smallest_memory_bytes == operators.smallest_memory_bytes
    assert blocks.smallest_memory_bytes is not None
    assert "it has a plan" in blocks.reason


def periodic(problem: Problem, context: Any) -> PlanResult:
    """One stage, back to back, in the times that the planner was shown."""
    (costs,) = problem.profile.costs
    share = 2 / costs.micro_batches[0]
    forward, backward = (
        sum(round(times[0] * share * 1e9) for times in column)
        for column in ([c.forward_s for c in costs.operators], [c.backward_s for c in costs.operators])
    )
    names = tuple(op.name for op in problem.profile.graph.operators)
    schedule = PeriodicSchedule(
        period_ns=forward + backward, stage=(0, 0), kinds="FB", start_ns=(0, forward), shift=(0, 0)
    )
    plan = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=2),))
    return PlanResult(plan=plan, schedule=schedule)


@pytest.mark.parametrize(("size", "kept"), [(2, True), (3, False)])
def test_instants_are_kept_only_where_stages_take_as_long(size: int, kept: bool) -> None:
    """Profiled at 3 samples, operators of 10 and 20 ns take 6.67 and 13.3 ns at 2: rounded each, or as a sum."""
    problem = chain_problem([10] * 12, [20] * 12, cluster(1), mini_batch=4)
    (costs,) = problem.profile.costs
    problem = replace(problem, profile=replace(problem.profile, costs=(replace(costs, micro_batches=(size,)),)))
    made = run_trial(
        HOST,
        Trial(
            workload=workload(problem), regime="async", planner=planner(periodic, regimes=("async",)), coarsen=4
        ),
    )
    dropped = "its schedule is left out: stages take other nanoseconds operator by operator"
    assert (dropped in made.row.notices) is not kept
    assert made.row.scheduler == "own" if kept else made.row.scheduler != "own"


def test_keys_of_trials_without_it_are_what_they_were() -> None:
    fields: dict[str, Any] = {
        "problem_id": "p",
        "regime": "sync",
        "planner": {"name": "mine", "source": "s"},
        "timeout_s": 1.0,
    }
    import msgspec

    plain = msgspec.convert(fields, TrialInputs)
    blocks = replace(plain, coarsen=4)
    assert "coarsen" not in plain.identity_content()
    assert blocks.identity_content()["coarsen"] == 4
    assert len({trial_key(plain), trial_key(blocks), trial_key(replace(plain, coarsen=5))}) == 3
