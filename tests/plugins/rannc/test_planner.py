"""The planner end to end: valid plans, pins, variants, bad input."""

import time
from typing import Any

import pytest
from hypothesis import given, settings

from pipebench.check import check_schedule
from pipebench.check.pins import check_pins
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.problem import Problem
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_rannc.planner import plan
from pipebench_rannc.plugin import RaNNCOptions
from pipebench_rannc.variants import PAPER, RELEASED, differences
from tests.builders import chain_problem, cluster
from tests.nightly import examples
from tests.plugins.rannc.strategies import problems, with_pins
from tests.plugins.running import services

VARIANTS = ("paper", "released", "best")


def planned(problem: Problem, **options: Any) -> PlanResult:
    return plan(problem, Context(options=RaNNCOptions(**options), services=services()))


def total_ns(problem: Problem, result: PlanResult) -> int:
    schedule = result.schedule or services().schedule("gpipe", problem, result.plan)
    assert check_schedule(problem, result.plan, schedule).status == "valid"
    return services().simulate(problem, result.plan, schedule).total_ns


def chain(devices: int = 4, memory: int = 10**9, **more: Any) -> Problem:
    more = {"mode": "sync", "mini_batch": 8} | more
    on = cluster(devices, memory)
    return chain_problem([5, 9, 4, 7, 6, 8], [10, 18, 8, 14, 12, 16], on, weights=[40] * 6, saved=[30] * 6, **more)


def two_nodes() -> Cluster:
    levels = (
        LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9),
        LinkLevel(name="network", group=4, bandwidth_bytes_s=1e8),
    )
    return Cluster(
        name="nodes", types=(DeviceType(name="gpu", memory_bytes=10**9),), devices=("gpu",) * 4, levels=levels
    )


@pytest.mark.parametrize("variant", VARIANTS)
@given(problem=problems(most=7, memory=4000))
@settings(max_examples=examples(25), deadline=None)
def test_plans_are_valid_where_there_is_one(variant: str, problem: Problem) -> None:
    try:
        result = planned(problem, variant=variant, blocks=4, in_flight=None if variant == "best" else "all")
    except InfeasibleProblem:
        return
    total_ns(problem, result)
    names = [name for stage in result.plan.stages for name in stage.operators]
    assert set(names) == set(problem.profile.graph.index)


@given(problem=problems(most=7, memory=2500))
@settings(max_examples=examples(25), deadline=None)
def test_best_is_never_behind_the_others(problem: Problem) -> None:
    others = []
    for name in ("gpipe-hybrid", "data-parallel", "rannc[variant=paper,prune=none]"):
        try:
            found = services().plan(name, problem)
        except (InfeasibleProblem, UnsupportedProblem):
            continue
        default = "1f1b" if name == "data-parallel" else "gpipe"
        schedule = services().schedule(default, problem, found.plan)
        assert check_schedule(problem, found.plan, schedule).status == "valid"
        others.append((name, services().simulate(problem, found.plan, schedule).total_ns))
    if others:
        best = total_ns(problem, planned(problem))
        assert all(best <= other for name, other in others if not name.startswith("rannc"))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "pins",
    [
        {"pipeline": 3},
        {"micro_batch": 2},
        {"data_parallel": 2},
        {"data_parallel": 2, "pipeline": 2, "micro_batch": 4},
        {"recompute": "stage"},
        {"recompute": "none"},
    ],
)
def test_pins_are_honoured(variant: str, pins: dict[str, Any]) -> None:
    problem = with_pins(chain(), **pins)
    result = planned(problem, variant=variant, **({} if variant == "best" else {"prune": "none"}))
    assert check_pins(problem, result.plan).status == "valid"
    total_ns(problem, result)


@pytest.mark.parametrize("pins", [{"tensor_parallel": 2}, {"virtual_stages": 2}])
def test_pins_that_it_cannot_honour_are_refused(pins: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedProblem, match="pinned"):
        planned(with_pins(chain(), **pins))


def test_async_is_refused() -> None:
    with pytest.raises(UnsupportedProblem, match="sync regime"):
        planned(chain(mode="async"))


def test_more_blocks_than_operators_makes_each_a_block() -> None:
    result = planned(chain(), blocks=99)
    assert any("each of 6 atomic subcomponents" in notice for notice in result.notices)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_device_runs_everything(variant: str) -> None:
    result = planned(chain(devices=1), variant=variant)
    assert [stage.devices for stage in result.plan.stages] == [(0,)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_graph_of_constants_is_refused(variant: str) -> None:
    graph = OperatorGraph(name="constants", operators=(Operator(name="a", kind="op", constant=True),))
    costs = (OperatorCosts(operator="a", forward_s=(1e-9,), backward_s=(1e-9,)),)
    on = DeviceCosts(device_type="gpu", micro_batches=(1,), operators=costs)
    problem = chain()
    profile = Profile(name="constants", graph=graph, costs=(on,))
    with pytest.raises(UnsupportedProblem, match="is constant"):
        planned(
            Problem(profile=profile, cluster=problem.cluster, mini_batch=8, regime=problem.regime), variant=variant
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_too_little_memory_is_infeasible(variant: str) -> None:
    with pytest.raises(InfeasibleProblem, match="no stages made of 6 blocks fit 100 bytes"):
        planned(chain(memory=100), variant=variant)


def test_more_than_one_micro_batch_checkpoints() -> None:
    result = planned(with_pins(chain(), pipeline=2), variant="paper", prune="none")
    assert {stage.recompute for stage in result.plan.stages} == {
        "stage" if 8 // result.plan.copies > result.plan.stages[0].micro_batch else "none"
    }


def test_algorithm_2_stops_at_the_fewest_stages_that_fit() -> None:
    """Everything fits one device: one stage on all four, although more stages may be faster."""
    assert len(planned(chain(), variant="paper").plan.stages) == 1


def test_a_pipeline_is_copied_to_every_node() -> None:
    problem = chain()
    nodes = Problem(
        profile=problem.profile, cluster=two_nodes(), mini_batch=problem.mini_batch, regime=problem.regime
    )
    result = planned(nodes, variant="paper")
    assert result.plan.copies == 2
    assert {device for stage in result.plan.stages for device in stage.devices} == {0, 1}
    assert total_ns(nodes, result) > 0


def test_the_released_margin_leaves_memory_free() -> None:
    """A tenth of the device stays free, so less memory is enough for the paper's variant alone."""
    found = {}
    for variant in ("paper", "released"):
        for memory in range(200, 3000, 50):
            try:
                planned(chain(devices=1, memory=memory), variant=variant)
            except InfeasibleProblem:
                continue
            found[variant] = memory
            break
    assert found["paper"] <= 0.9 * found["released"] + 50
    assert found["paper"] < found["released"]


def test_options_override_what_a_variant_stands_for() -> None:
    assert differences(RaNNCOptions(variant="paper")) == PAPER
    assert differences(RaNNCOptions(variant="released")) == RELEASED
    mixed = differences(RaNNCOptions(variant="released", margin=0.0, prune="none"))
    assert (mixed.margin, mixed.prune, mixed.coarsening) == (0.0, "none", "released")
    with pytest.raises(InvalidValue, match="prune: for variant=paper"):
        RaNNCOptions(prune="none")


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_time_is_a_timeout(variant: str) -> None:
    context = Context(options=RaNNCOptions(variant=variant, blocks=2), deadline_s=time.monotonic() - 1)
    context.services = services()
    with pytest.raises(DeadlineReached):
        plan(chain(), context)


def test_too_many_blocks_are_refused_before_the_search() -> None:
    """Small tables, of few micro-batches, would come first: the search of those alone takes minutes."""
    on = cluster(128, 10**9)
    problem = chain_problem(
        [5] * 129, [9] * 129, on, weights=[4] * 129, saved=[3] * 129, mode="sync", mini_batch=256
    )
    context = Context(options=RaNNCOptions(blocks=0), services=services(), deadline_s=time.monotonic() + 1)
    with pytest.raises(UnsupportedProblem, match=r"129 blocks on up to 128 devices make tables of 4\.7 GB"):
        plan(problem, context)
    assert "stage_searches" not in context.counters


def test_counters_are_exact_from_run_to_run() -> None:
    counted = []
    for _ in range(2):
        context = Context(options=RaNNCOptions(), services=services())
        plan(chain(), context)
        counted.append(context.counters)
    assert counted[0] == counted[1]
    assert {"transitions", "candidates", "simulated"} <= set(counted[0])
