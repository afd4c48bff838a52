"""Piper's replicas take micro-batches in turn: what stages keep in flight, and plans that reach their claim."""

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.result import PlanResult
from pipebench_piper.planner import plan
from pipebench_piper.plugin import PiperPlannerOptions, pipebench_planners
from tests.builders import chain_problem, cluster
from tests.nightly import mostly_at_night
from tests.plugins.piper.problems import BANDWIDTH, GIB, on_cluster, published
from tests.plugins.running import context, scheduled, time_ns

FREE = 1e18
"""Links that take no time, in bytes a second."""


def unequal(memory: int = 10**18) -> Problem:
    """Six devices for stages of 1, 4 and 1 replicas."""
    on = cluster(6, memory=memory)
    return chain_problem([10, 40, 10], [20, 80, 20], on, weights=[10**6, 0, 10**6], mode="sync", mini_batch=48)


def test_replicas_take_whole_micro_batches_in_turn() -> None:
    """Piper counts 6, ceil(5 / 4) and 1; the first keeps one more than the 8 of the four behind it."""
    problem = unequal()
    made = plan(problem, context(PiperPlannerOptions(memory="piper"))).plan
    assert [stage.data_parallel for stage in made.stages] == [1, 4, 1]
    assert [stage.turns for stage in made.stages] == [1, 4, 1]
    assert {stage.micro_batch for stage in made.stages} == {1}
    assert [stage.in_flight for stage in made.stages] == [9, 2, 1]
    assert check_schedule(problem, made, scheduled(problem, made)).status == "valid"


def test_info_says_what_replicas_mean() -> None:
    (planner,) = pipebench_planners()
    assert planner.capabilities.round_robin
    assert any(each.startswith("replicas take whole micro-batches in turn") for each in planner.deviations)


def test_where_memory_is_short_stages_keep_what_piper_counts() -> None:
    weights = 2 * 10**6
    roomy = chain_problem(
        [10, 40, 10], [20, 80, 20], cluster(6, memory=weights + 9 * 10), weights=[10**6, 0, 10**6],
        saved=[10, 10, 10], activations=[0] * 4, mode="sync", mini_batch=48,
    )  # fmt: skip
    tight = replace(roomy, cluster=cluster(6, memory=weights + 6 * 10))
    for problem, kept in ((roomy, [9, 2, 1]), (tight, [6, 2, 1])):
        found = plan(problem, context(PiperPlannerOptions()))
        assert [stage.in_flight for stage in found.plan.stages] == kept
        assert check_schedule(problem, found.plan, scheduled(problem, found.plan)).status == "valid"


def test_replicas_that_share_each_micro_batch_are_an_option() -> None:
    """Four samples on four replicas, and a micro-batch in flight for each stage from there on."""
    problem = replace(unequal(), pins=Pins(micro_batch=4))
    made = plan(problem, context(PiperPlannerOptions(replicas="split"))).plan
    assert {stage.turns for stage in made.stages} == {1}
    assert [stage.data_parallel for stage in made.stages] == [1, 4, 1]
    assert [stage.in_flight for stage in made.stages] == [12, 8, 4]
    assert check_schedule(problem, made, scheduled(problem, made)).status == "valid"


def test_degrees_that_meet_again_too_late_are_refused_by_name() -> None:
    problem = chain_problem(
        [37, 41],
        [37, 41],
        cluster(78),
        weights=[1000] * 2,
        mode="sync",
        mini_batch=37 * 41,
        activations=[0, 1, 0],
    )
    tight = replace(problem, cluster=cluster(78, memory=3000))
    with pytest.raises(UnsupportedProblem, match="1517 micro-batches"):
        plan(tight, context(PiperPlannerOptions()))


MICRO_BATCHES = 1920
"""Of a mini-batch in the published experiments."""


def steady_s(problem: Problem, made: Plan) -> float:
    """Seconds of a micro-batch without flush: mini-batches of 16 times as many micro-batches, less 8 times."""
    long, short = (time_ns(replace(problem, mini_batch=times * MICRO_BATCHES), made) for times in (16, 8))
    return (long - short) / (8 * MICRO_BATCHES) / 1e9


def bert(bandwidth: float, memory: str) -> tuple[Problem, PlanResult]:
    """bert32 on 64 devices of 8 GiB."""
    problem = on_cluster(published("bert32a100"), 64, 8 * GIB, MICRO_BATCHES, bandwidth)
    found = plan(problem, context(PiperPlannerOptions(memory=memory)))  # type: ignore[arg-type]
    assert check_plan(problem, found.plan).status == "valid"
    assert len({stage.data_parallel for stage in found.plan.stages}) > 3
    return problem, found


def test_the_plan_for_bert_reaches_its_claim_over_free_links() -> None:
    problem, found = bert(FREE, "suite")
    assert found.claimed_native is not None
    assert check_schedule(problem, found.plan, scheduled(problem, found.plan)).status == "valid"
    assert steady_s(problem, found.plan) == pytest.approx(found.claimed_native, rel=0.03)


def test_the_plan_of_pipers_memory_reaches_its_claim_where_memory_is_left_aside() -> None:
    """It lacks transfer buffers, so that it does not fit by the suite's memory."""
    problem, found = bert(FREE, "piper")
    assert found.claimed_native is not None
    assert steady_s(problem, found.plan.without_in_flight()) == pytest.approx(found.claimed_native, rel=0.03)


@pytest.mark.parametrize("memory", mostly_at_night(["suite", "piper"], ()))
def test_over_charged_links_bert_is_as_fast_as_claimed_less_what_overlaps(memory: str) -> None:
    """Piper adds transfers to the compute of a stage, in the simulation they go on beside it."""
    problem, found = bert(BANDWIDTH, memory)
    assert found.claimed_native is not None
    made = found.plan.without_in_flight() if memory == "piper" else found.plan
    compute = compute_s(problem, made)
    assert compute * (1 - 1e-9) <= steady_s(problem, made) <= 1.03 * found.claimed_native
    assert steady_s(problem, made) == pytest.approx(compute, rel=0.03)


def compute_s(problem: Problem, made: Plan) -> float:
    """Seconds of a micro-batch of the slowest stage, from its alternatives: once in as many as it has replicas."""
    costs = {each.operator: each for each in problem.profile.costs[0].operators}
    slowest = 0.0
    for stage in made.stages:
        ways = [
            costs[name].alternative(choice) if choice else costs[name]
            for name, choice in zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True)
        ]
        busy = sum(way.forward_s[0] + way.backward_s[0] for way in ways)
        slowest = max(slowest, busy / stage.data_parallel)
    return slowest
