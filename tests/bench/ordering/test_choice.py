"""The order that counts is the best of all schedulers that take the plan, by figures taken one by one."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench.ordering import choice
from pipebench.bench.ordering.adaptation import adapted_plans
from pipebench.bench.ordering.choice import OrderedPlan, OrderFailure, flush_notes, order_plan
from pipebench.bench.ordering.schedulers import candidates, tried_schedulers
from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.check import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.result import PlanResult
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, dag_problem, stages_plan

HOST = Host()
SERVICES = HostServices(HOST)
PLANNER = Planner(name="mine", summary="", load="")


def drawn(seed: int, mode: RegimeMode, memory: int = 10**15) -> tuple[Problem, Plan]:
    """A chain or a fork of four operators, a stage each, some stages with replicas, some on shared devices."""
    draw = random.Random(seed)
    operators = 4
    forks = draw.random() < 0.4
    edges = [(0, (1, 2), 3), (1, (3,), 2), (2, (3,), 2)] if forks else [(i, (i + 1,), 3) for i in range(3)]
    problem = dag_problem(
        [draw.randint(2, 30) for _ in range(operators)],
        [draw.randint(2, 60) for _ in range(operators)],
        edges,
        cluster(8, memory),
        weights=[draw.randint(1, 9) for _ in range(operators)],
        saved=[draw.randint(1, 9) for _ in range(operators)],
        mode=mode,
        mini_batch=8,
        micro_batches=(1, 2, 4, 8),
    )
    replicas = [draw.choice((1, 1, 2)) for _ in range(operators)]
    plan = stages_plan([[i] for i in range(operators)], micro_batch=2, replicas=replicas)
    if draw.random() < 0.3:
        stages = list(stages_plan([[i] for i in range(operators)], micro_batch=2).stages)
        stages[3] = replace(stages[3], devices=stages[0].devices)
        kind = placement_kind_of([stage.devices for stage in stages])
        plan = Plan(stages=tuple(stages), placement=kind)
    return problem, plan


def ordered(problem: Problem, plan: Plan, *, adapted: bool = False, **more: Any) -> OrderedPlan | OrderFailure:
    arguments: dict[str, Any] = {"named": None, "offered": (), "seed": 0} | more
    return order_plan(HOST, problem, PLANNER, PlanResult(plan=plan), adapted=adapted, **arguments)


def seconds_under(name: str, problem: Problem, plan: Plan) -> float | None:
    """By that scheduler alone; None where it makes no valid schedule."""
    try:
        schedule = SERVICES.schedule(name, problem, plan)
    except PipebenchError:
        return None
    if judge(problem, plan, schedule).status != "valid":
        return None
    return metrics(problem, plan, simulate(problem, plan, schedule)).seconds


def seconds(problem: Problem, found: OrderedPlan) -> float:
    return metrics(problem, found.plan, simulate(problem, found.plan, found.schedule)).seconds


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_best_of_all_taken_one_by_one(seed: int, mode: RegimeMode) -> None:
    problem, plan = drawn(seed, mode)
    found = ordered(problem, plan)
    assert isinstance(found, OrderedPlan)
    assert found.verdict.status == "valid"
    alone = {name: seconds_under(name, problem, plan) for name in tried_schedulers(HOST, mode)}
    known = {name: each for name, each in alone.items() if each is not None}
    assert seconds(problem, found) == min(known.values()) == known[found.scheduler]


def test_what_is_tried_is_what_the_regime_needs_and_no_clock_decides() -> None:
    assert set(tried_schedulers(HOST, "async")) == {"1f1b*", "1f1b-rr", "periodic-bnb"}
    assert {"gpipe", "1f1b", "zb-h1", "greedy"} <= set(tried_schedulers(HOST, "sync"))
    problem, plan = drawn(0, "sync")
    one = stages_plan([[0, 1, 2, 3]], micro_batch=2)
    assert candidates(HOST, PLANNER, "sync", one) == ["1f1b"]
    assert candidates(HOST, PLANNER, problem.regime.mode, plan)[0] == "1f1b"


def test_a_named_scheduler_is_the_only_one() -> None:
    problem, plan = drawn(1, "sync")
    found = ordered(problem, plan, named="gpipe")
    assert isinstance(found, OrderedPlan)
    assert found.scheduler == "gpipe"
    assert seconds(problem, found) == seconds_under("gpipe", problem, plan)
    refused = ordered(problem, plan, named="zb-v")
    assert isinstance(refused, OrderFailure)
    assert (refused.status, refused.scheduler) == ("unsupported", "zb-v")


def test_of_those_that_are_offered_one_is_chosen() -> None:
    problem, plan = drawn(1, "sync")
    found = ordered(problem, plan, offered=("gpipe", "1f1b"))
    assert isinstance(found, OrderedPlan)
    assert found.scheduler in ("gpipe", "1f1b")


def test_a_schedule_that_comes_with_the_plan_stands_unless_another_is_named() -> None:
    problem, plan = drawn(1, "sync")
    own = SERVICES.schedule("gpipe", problem, plan)
    result = PlanResult(plan=plan, schedule=own, scheduler="theirs")
    common = {"adapted": False, "seed": 0, "offered": ()}
    found = order_plan(HOST, problem, PLANNER, result, named=None, **common)  # type: ignore[arg-type]
    assert isinstance(found, OrderedPlan)
    assert (found.schedule, found.scheduler) == (own, "theirs")
    named = order_plan(HOST, problem, PLANNER, result, named="1f1b", **common)  # type: ignore[arg-type]
    assert isinstance(named, OrderedPlan)
    assert named.scheduler == "1f1b"


@pytest.mark.parametrize(
    ("mode", "scheduler", "said"), [("async", "1f1b", True), ("async", "1f1b*", False), ("sync", "1f1b", False)]
)
def test_a_flush_in_the_regime_without_one_is_said(mode: RegimeMode, scheduler: str, said: bool) -> None:
    problem = chain_problem([3, 5], [4, 6], cluster(2), mode=mode, mini_batch=4)
    found = ordered(problem, stages_plan([[0], [1]]), named=scheduler)
    assert isinstance(found, OrderedPlan)
    (named, own) = (flush_notes(problem, found, name) for name in (scheduler, None))
    assert (len(named), len(own)) == (int(said), int(said))
    for note in (*named, *own):
        assert "a flush in the async regime: the pipeline drains at each mini-batch" in note
        assert ("(use 1f1b*, or --regime sync)" in note) == (note in named)


def test_what_fits_counts_before_what_is_fast() -> None:
    """GPipe keeps all eight micro-batches of the last stage, greedy orders may keep few."""
    problem, plan = drawn(3, "sync")
    roomy = ordered(problem, plan)
    assert isinstance(roomy, OrderedPlan)
    peak = max(roomy.verdict.peak_bytes.values())
    for memory in range(peak - 1, 0, -3):
        tight, plan = drawn(3, "sync", memory)
        fitting = [
            each
            for name in tried_schedulers(HOST, "sync")
            if (each := seconds_under(name, tight, plan)) is not None
        ]
        found = ordered(tight, plan)
        assert isinstance(found, OrderedPlan)
        assert (found.verdict.status == "valid") == bool(fitting)
        if fitting:
            assert seconds(tight, found) == min(fitting)
        else:
            return
    raise AssertionError("some memory is too small")


def test_a_plan_that_is_wrong_under_any_schedule_says_so() -> None:
    problem, _ = drawn(0, "sync")
    found = ordered(problem, stages_plan([[0, 1], [2]], micro_batch=2))
    assert isinstance(found, OrderFailure)
    assert found.status == "invalid_plan"
    assert "op3" in found.reason
    assert found.verdict is not None


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("seed", range(12))
def test_an_adapted_plan_has_the_best_micro_batch_of_its_first_scheduler(seed: int, mode: RegimeMode) -> None:
    problem, plan = drawn(seed, mode)
    found = ordered(problem, plan, adapted=True)
    assert isinstance(found, OrderedPlan)
    assert found.verdict.status == "valid"
    assert [stage.operators for stage in found.plan.stages] == [stage.operators for stage in plan.stages]
    name = next(
        name for name in candidates(HOST, PLANNER, mode, plan) if seconds_under(name, problem, plan) is not None
    )
    sized = {
        size: each
        for size in (1, 2, 4, 8)
        if size >= max(stage.data_parallel for stage in plan.stages)
        and (each := seconds_under(name, problem, with_size(plan, size))) is not None
    }
    (size,) = {stage.micro_batch for stage in found.plan.stages}
    assert sized[size] == min(sized.values())
    assert seconds(problem, found) <= sized[size]


def test_an_adapted_plan_whose_operators_split_the_batch_gets_a_micro_batch_of_as_many_samples() -> None:
    problem = chain_problem([80], [160], cluster(4), mode="async", mini_batch=8)
    (stage,) = stages_plan([[0]], micro_batch=8).stages
    split = Plan(stages=(replace(stage, devices=(0, 1, 2, 3), tensor_parallel=4, sharding=({"batch": 4},)),))
    assert all(plan.stages[0].micro_batch >= 4 for plan in adapted_plans(problem, split))
    found = ordered(problem, split, adapted=True)
    assert isinstance(found, OrderedPlan)
    assert found.verdict.status == "valid"


def with_size(plan: Plan, size: int) -> Plan:
    return replace(plan, stages=tuple(replace(stage, micro_batch=size) for stage in plan.stages))


def test_pinned_micro_batches_stay_and_stages_of_several_sizes_get_one_without_a_flush() -> None:
    problem, plan = drawn(1, "async")
    pinned = replace(problem, pins=Pins(micro_batch=2))
    found = ordered(pinned, plan, adapted=True)
    assert isinstance(found, OrderedPlan)
    assert {stage.micro_batch for stage in found.plan.stages} == {2}
    first, *others = plan.stages
    mixed = replace(plan, stages=(replace(first, micro_batch=4, k=2, in_flight=8), *others))
    found = ordered(problem, mixed, adapted=True)
    assert isinstance(found, OrderedPlan)
    assert len({stage.micro_batch for stage in found.plan.stages}) == 1
    assert {(stage.k, stage.in_flight) for stage in found.plan.stages} == {(1, 0)}
    assert any("k = 1" in note for note in found.notes)
    assert found.planned_micro_batch == tuple(sorted({4, *(stage.micro_batch for stage in others)}))


def test_the_planners_own_scheduler_is_shown_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain_problem([10] * 4, [20] * 4, cluster(4), saved=[1] * 4, mode="sync", mini_batch=8)
    plan = stages_plan([[i] for i in range(4)])
    monkeypatch.setattr(choice, "candidates", lambda *_: ["gpipe", "1f1b"])
    gpipe_first = Planner(name="mine", summary="", load="", default_scheduler={"sync": "gpipe"})
    heavy = replace(problem, pins=Pins(reserve=0.0))
    result = PlanResult(plan=plan)
    found = order_plan(
        HOST, heavy, gpipe_first, result, named=None, offered=("1f1b", "gpipe"), adapted=False, seed=0
    )
    assert isinstance(found, OrderedPlan)
    assert found.scheduler == "1f1b"
    assert found.own_scheduler == "gpipe"
    own_s = simulate(problem, plan, SERVICES.schedule("gpipe", problem, plan)).total_ns / 1e9
    assert found.own_scheduler_s == pytest.approx(own_s)
    assert found.notes == ()
    assert check_schedule(problem, found.plan, found.schedule).status == "valid"


@pytest.mark.parametrize("seed", range(40, 52))
def test_other_schedulers_order_the_best_micro_batch_of_the_first(seed: int) -> None:
    """Passes have an overhead, so that it is not the smallest; weight gradients make other orders better."""
    problem, plan = drawn(seed, "sync")
    costs = problem.profile.costs[0]
    sizes = costs.micro_batches
    operators = tuple(
        replace(
            each,
            forward_s=tuple(8e-9 + each.forward_s[0] * size for size in sizes),
            backward_s=tuple(8e-9 + each.backward_s[0] * size for size in sizes),
            weight_gradient_s=tuple(each.backward_s[0] * size / 2 for size in sizes),
        )
        for each in costs.operators
    )
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    problem = replace(problem, profile=profile, mini_batch=16)
    found = ordered(problem, plan, adapted=True)
    assert isinstance(found, OrderedPlan)
    sized = adapted_plans(problem, plan)
    first, *others = candidates(HOST, PLANNER, "sync", plan)
    known = {id(each): under for each in sized if (under := seconds_under(first, problem, each)) is not None}
    chosen = next(each for each in sized if known.get(id(each)) == min(known.values()))
    every = [min(known.values()), *(seconds_under(name, problem, chosen) for name in others)]
    assert seconds(problem, found) == min(each for each in every if each is not None)
