"""The planner: valid plans, the best micro-batch, pins, refusals."""

import msgspec
import pytest

from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from tests.builders import cluster, dag_problem
from tests.plugins.pipedream.brute_force import random_problem
from tests.plugins.running import context, scheduled, time_ns

MODES: tuple[RegimeMode, ...] = ("sync", "async")


def run(problem: Problem, **options: str) -> PlanResult:
    return pipedream(problem, context(PipeDreamPlannerOptions(**options)))  # type: ignore[arg-type]


def pinned(problem: Problem, **pins: object) -> Problem:
    return msgspec.structs.replace(problem, pins=Pins(**pins))  # type: ignore[arg-type]


def several_sizes(seed: int, mode: RegimeMode, devices: int = 4) -> Problem:
    """A problem of 16 samples whose operators are slow at small micro-batches."""
    problem = msgspec.structs.replace(random_problem(seed, mode, devices, 4), mini_batch=16)
    device = problem.profile.costs[0]
    sizes = (1, 2, 4, 8, 16)
    operators = tuple(
        msgspec.structs.replace(
            costs,
            forward_s=tuple(costs.forward_s[0] * (1 + size / 3) for size in sizes),
            backward_s=tuple(costs.backward_s[0] * (1 + size / 2) for size in sizes),
        )
        for costs in device.operators
    )
    profile = msgspec.structs.replace(
        problem.profile, costs=(msgspec.structs.replace(device, micro_batches=sizes, operators=operators),)
    )
    return msgspec.structs.replace(problem, profile=profile)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ["branch", "level"])
@pytest.mark.parametrize("execution", ["sequential", "graph"])
@pytest.mark.parametrize("seed", range(5))
def test_plans_and_their_schedules_are_valid(seed: int, execution: str, order: str, mode: RegimeMode) -> None:
    problem = several_sizes(seed, mode)
    result = run(problem, order=order, execution=execution)
    assert check_plan(problem, result.plan).status == "valid"
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("execution", ["sequential", "graph"])
@pytest.mark.parametrize("seed", range(4))
def test_plans_stay_within_tight_memory(seed: int, execution: str, mode: RegimeMode) -> None:
    roomy = several_sizes(seed, mode)
    valid = infeasible = 0
    for memory in range(100, 1100, 200):
        problem = msgspec.structs.replace(roomy, cluster=cluster(4, memory, bandwidth=0.7e9, latency_s=2e-9))
        try:
            result = run(problem, execution=execution)
        except InfeasibleProblem:
            infeasible += 1
            continue
        assert check_schedule(problem, result.plan, scheduled(problem, result.plan)).status == "valid"
        valid += 1
    assert valid > 0
    assert infeasible > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_the_micro_batch_is_the_best_of_all(seed: int, mode: RegimeMode) -> None:
    problem = several_sizes(seed, mode)
    alone = [time_ns(problem, run(pinned(problem, micro_batch=size)).plan) for size in (1, 2, 4, 8, 16)]
    assert time_ns(problem, run(problem).plan) == min(alone)
    assert len(set(alone)) > 1


@pytest.mark.parametrize("mode", MODES)
def test_both_forms_claim_the_same_and_work_is_counted_exactly(mode: RegimeMode) -> None:
    problem = pinned(several_sizes(1, mode), micro_batch=4)
    counted = []
    for form in ("k", "bs", "k"):
        called = context(PipeDreamPlannerOptions(form=form))
        result = pipedream(problem, called)
        counted.append((result.claimed_native, result.claimed_s, dict(called.counters)))
    assert counted[0] == counted[2]
    assert counted[0][:2] == counted[1][:2]
    assert counted[0][1] == pytest.approx(counted[0][0] * 4 / 1e9)
    assert counted[0][2]["states"] > 0
    assert counted[0][2]["transitions"] > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "pins", [{"pipeline": 3}, {"pipeline": 1}, {"data_parallel": 2}, {"pipeline": 2, "data_parallel": 2}]
)
def test_pins_are_honoured(pins: dict[str, int], mode: RegimeMode) -> None:
    problem = pinned(several_sizes(3, mode), **pins)
    result = run(problem)
    assert check_pins(problem, result.plan).status == "valid"
    assert check_plan(problem, result.plan).status == "valid"


@pytest.mark.parametrize(
    "pins",
    [{"tensor_parallel": 2}, {"virtual_stages": 2}, {"recompute": "stage"}],
    ids=lambda pins: next(iter(pins)),
)
def test_pins_that_it_cannot_express_are_refused(pins: dict[str, object]) -> None:
    with pytest.raises(UnsupportedProblem, match=str(next(iter(pins.values())))):
        run(pinned(several_sizes(3, "sync"), **pins))


def test_the_target_form_refuses_a_pinned_number_of_stages() -> None:
    with pytest.raises(UnsupportedProblem, match="form=k"):
        run(pinned(several_sizes(3, "sync"), pipeline=2), form="bs")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pins", [{"pipeline": 9}, {"data_parallel": 9}, {"pipeline": 3, "data_parallel": 2}])
def test_pins_that_nothing_meets_are_infeasible(pins: dict[str, int], mode: RegimeMode) -> None:
    with pytest.raises(InfeasibleProblem, match="4 devices"):
        run(pinned(several_sizes(3, mode), **pins))


@pytest.mark.parametrize("mode", MODES)
def test_too_little_memory_is_infeasible(mode: RegimeMode) -> None:
    problem = dag_problem([5, 5], [5, 5], [(0, (1,), 3)], cluster(2, memory=40), weights=[30, 30], mode=mode)
    with pytest.raises(InfeasibleProblem, match="40 bytes"):
        run(problem)


def test_the_reserve_is_kept_where_possible_and_used_where_not() -> None:
    # One device each: 2 x 30 bytes of weights. 100 bytes with 30 % reserved fit one operator, not two.
    problem = dag_problem([5, 5], [5, 5], [(0, (1,), 0)], cluster(2, memory=100), weights=[30, 30])
    assert len(run(pinned(problem, reserve=0.3)).plan.stages) == 2
    assert len(run(pinned(problem, reserve=0.5)).plan.stages) == 2


def test_sequential_execution_orders_the_stages_and_graph_leaves_them_free() -> None:
    # Two branches of equal weight that meet in a light operator: four stages at most.
    tensors = [(0, (1,), 0), (1, (4,), 0), (2, (3,), 0), (3, (4,), 0)]
    problem = dag_problem([9, 9, 9, 9, 1], [9, 9, 9, 9, 1], tensors, cluster(4), mini_batch=8)
    problem = pinned(problem, micro_batch=1, data_parallel=1)
    sequential = run(problem).plan
    graph = run(problem, execution="graph").plan
    assert [s.operators for s in sequential.stages] == [s.operators for s in graph.stages]
    assert sequential.order_edges == ((0, 1), (1, 2), (2, 3))
    assert [s.in_flight for s in sequential.stages] == [4, 3, 2, 1]
    assert graph.order_edges == ()
    assert [s.in_flight for s in graph.stages] == [0, 0, 0, 0]
    assert time_ns(problem, graph) < time_ns(problem, sequential)


def test_async_stages_of_a_graph_are_a_relayed_chain() -> None:
    tensors = [(0, (1,), 0), (1, (4,), 5), (2, (3,), 0), (3, (4,), 0)]
    problem = dag_problem([9] * 5, [9] * 5, tensors, cluster(5), mode="async")
    assert run(problem).plan.routing == "relay"
    chain = dag_problem([9] * 3, [9] * 3, [(0, (1,), 1), (1, (2,), 1)], cluster(3), mode="async")
    assert run(chain).plan.routing == "direct"
    apart = dag_problem([9] * 2, [9] * 2, [], cluster(2), mode="async")
    result = run(apart)
    assert len(result.plan.stages) == 2
    assert check_schedule(apart, result.plan, scheduled(apart, result.plan)).status == "valid"


@pytest.mark.parametrize("mode", MODES)
def test_sizes_beyond_those_profiled_are_shared_by_replicas(mode: RegimeMode) -> None:
    # A launch of 50 ns a kernel, profiled for one and two samples; 16 samples on 8 devices are two each. In turn,
    # a micro-batch is two samples.
    problem = dag_problem([60] * 3, [60] * 3, [(0, (1,), 1), (1, (2,), 1)], cluster(8), mode=mode, mini_batch=32)
    device = problem.profile.costs[0]
    operators = tuple(
        msgspec.structs.replace(costs, forward_s=(60e-9, 70e-9), backward_s=(60e-9, 70e-9))
        for costs in device.operators
    )
    device = msgspec.structs.replace(device, micro_batches=(1, 2), operators=operators)
    problem = msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, costs=(device,)))
    in_turn = run(problem)
    assert sum(stage.data_parallel for stage in in_turn.plan.stages) == 8
    assert {stage.micro_batch for stage in in_turn.plan.stages} == {2}
    result = run(problem, replicas="split")
    assert sum(stage.data_parallel for stage in result.plan.stages) == 8
    assert result.plan.stages[0].micro_batch > 2
    for stage in result.plan.stages:
        assert stage.micro_batch <= 2 * stage.data_parallel
    seven = run(msgspec.structs.replace(problem, cluster=cluster(7), mini_batch=28))
    assert seven.plan.devices_used == 7
    assert not any("devices are not used" in notice for notice in seven.notices)


def test_sizes_that_cannot_win_are_left_out() -> None:
    # The same time at every size: four micro-batches or more cannot beat the mini-batch as one, two might. They do
    # where two devices take one each.
    on = cluster(2)
    problem = dag_problem([9] * 3, [9] * 3, [(0, (1,), 1)], on, mini_batch=8, micro_batches=(1, 2, 4, 8))
    for replicas, best in (("split", 8), ("round_robin", 4)):
        called = context(msgspec.convert({"replicas": replicas}, PipeDreamPlannerOptions))
        assert pipedream(problem, called).plan.stages[0].micro_batch == best
        assert called.counters["sizes_left_out"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_without_services_the_closed_form_chooses(mode: RegimeMode) -> None:
    problem = several_sizes(2, mode)
    result = pipedream(problem, Context(options=PipeDreamPlannerOptions()))
    assert check_plan(problem, result.plan).status == "valid"


def test_a_passed_deadline_stops_the_search() -> None:
    with pytest.raises(DeadlineReached):
        pipedream(several_sizes(2, "sync"), Context(options=PipeDreamPlannerOptions(), deadline_s=0.0))
