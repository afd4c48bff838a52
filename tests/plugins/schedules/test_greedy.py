"""Greedy orders: valid on any placement and graph of stages, and as fast as closed forms say."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.algorithms.orders.greedy import GreedyOrder
from pipebench.algorithms.orders.numbers_in_flight import numbers_in_flight
from pipebench.algorithms.orders.tables import Tables
from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench_schedules import greedy
from pipebench_schedules.greedy import most_live, schedule
from pipebench_schedules.plugin import GreedyOptions
from pipebench_schedules.shared_lanes import shared_lane
from tests.builders import chain_problem, cluster, dag_problem, mirrored_plan, nodes, stages_plan
from tests.plugins.running import services


def split(problem: Problem, share: float = 0.5) -> Problem:
    """The same with a weight gradient that is a share of each backward."""
    costs = problem.profile.costs[0]
    operators = tuple(
        replace(each, weight_gradient_s=tuple(share * time_s for time_s in each.backward_s))
        for each in costs.operators
    )
    return replace(problem, profile=replace(problem.profile, costs=(replace(costs, operators=operators),)))


def ns(problem: Problem, plan: Plan) -> int:
    made = schedule(problem, plan, Context(options=GreedyOptions()))
    verdict = check_schedule(problem, plan, made)
    assert verdict.status == "valid", verdict
    return simulate(problem, plan, made).total_ns


def equal_chain(stages: int, count: int) -> Problem:
    return chain_problem(
        [10] * stages, [20] * stages, cluster(stages), saved=[1] * stages, mode="sync", mini_batch=count
    )


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_on_equal_stages_it_is_1f1b(stages: int, count: int) -> None:
    problem = equal_chain(stages, count)
    assert ns(problem, stages_plan([[k] for k in range(stages)])) == (count + stages - 1) * 30


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (8, 16)])
def test_split_backwards_fill_waits_at_least_as_zb_h1_does(stages: int, count: int) -> None:
    """ZB-H1's bubble is (p - 1)(F + B - 2 W) with B the whole backward: Qi et al. 2023, table 1."""
    problem = split(equal_chain(stages, count))
    plan = stages_plan([[k] for k in range(stages)])
    theirs = services().schedule("zb-h1", problem, plan)
    assert ns(problem, plan) <= simulate(problem, plan, theirs).total_ns
    assert ns(problem, plan) <= count * 30 + (stages - 1) * (10 + 20 - 10)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_live_bounds_what_is_in_flight(stages: int) -> None:
    """With the memory of two 1F1Bs (ZB-2p) no device waits between its first task and its last."""
    count = 4 * stages
    problem = split(equal_chain(stages, count))
    plan = stages_plan([[k] for k in range(stages)])
    times = {}
    for live in (1, 2):
        made = schedule(problem, plan, Context(options=GreedyOptions(live=live)))
        verdict = check_schedule(problem, plan, made)
        assert verdict.status == "valid"
        assert max(verdict.peak_bytes.values()) <= live * stages
        times[live] = simulate(problem, plan, made).total_ns
    assert count * 30 + (stages - 1) * 10 == times[2] <= times[1]
    assert stages == 2 or times[2] < times[1]


@pytest.mark.parametrize(("live", "devices", "most"), [(1.15, 100, 115), (0.5, 3, 1), (0.1, 3, 1), (2.0, 8, 16)])
def test_live_is_the_decimal_that_was_given(live: float, devices: int, most: int) -> None:
    assert most_live(live, devices) == most


@pytest.mark.parametrize("declared", list(itertools.product((1, 2, 6), repeat=3)))
@pytest.mark.parametrize("split_too", [False, True])
def test_it_keeps_to_what_the_plan_declares_in_flight(declared: tuple[int, ...], split_too: bool) -> None:
    """And is as fast as the order with just these numbers."""
    problem = equal_chain(3, 6)
    problem = split(problem) if split_too else problem
    plan = stages_plan([[0], [1], [2]]).with_in_flight(declared)
    made = schedule(problem, plan, Context(options=GreedyOptions(links=True)))
    assert check_schedule(problem, plan, made).status == "valid"
    tables = Tables.of(CostModel(problem), plan, 6, links=True)
    own = min(GreedyOrder(tables, list(declared), parts).makespan_ns for parts in {False, split_too})
    assert simulate(problem, plan, made).total_ns <= own


def test_stages_that_declare_nothing_keep_any_number() -> None:
    problem = equal_chain(3, 6)
    plan = stages_plan([[0], [1], [2]])
    assert ns(problem, plan.with_in_flight([0, 0, 1])) == ns(problem, plan)
    assert ns(problem, plan.with_in_flight([1, 0, 0])) > ns(problem, plan)


def any_placement(draw: random.Random) -> tuple[Problem, Plan]:
    """A graph of two to six operators, each a stage, on any devices."""
    operators = draw.randint(2, 6)
    edges = [(i, (draw.randint(i + 1, operators - 1),), draw.randint(0, 9)) for i in range(operators - 1)]
    problem = dag_problem(
        [draw.randint(0, 20) for _ in range(operators)],
        [draw.randint(0, 40) for _ in range(operators)],
        edges,
        cluster(operators),
        weights=[draw.randint(1, 9) for _ in range(operators)],
        saved=[draw.randint(0, 9) for _ in range(operators)],
        mini_batch=draw.choice((2, 4, 8)),
    )
    problem = split(problem) if draw.random() < 0.5 else problem
    plan = stages_plan([[k] for k in range(operators)])
    sets = draw.randint(1, operators)
    stages = tuple(replace(stage, devices=(draw.randrange(sets),)) for stage in plan.stages)
    return problem, replace(plan, stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))


def used(plan: Plan) -> set[int]:
    """The devices of stages, of which each has one."""
    return {device for stage in plan.stages for device in stage.devices}


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_any_placement_of_any_graph_has_a_valid_order(seed: int) -> None:
    problem, plan = any_placement(random.Random(seed))
    work = max(
        sum(
            round(1e9 * (costs.forward_s[0] + costs.backward_s[0]))
            for stage, costs in zip(plan.stages, problem.profile.costs[0].operators, strict=True)
            if stage.devices == (device,)
        )
        for device in used(plan)
    )
    assert ns(problem, plan) >= work * problem.mini_batch


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_where_devices_have_room_for_one_micro_batch_in_each_stage_its_order_fits(seed: int) -> None:
    """Whatever stages share a device: one may wait for the room that another one takes."""
    problem, plan = any_placement(random.Random(seed))
    model = CostModel(problem)
    edges, need = model.messages(plan), dict.fromkeys(used(plan), 0)
    for position, stage in enumerate(plan.stages):
        need[stage.devices[0]] += model.stage_memory(plan, position, edges).peak(1)
    kinds = tuple(replace(kind, memory_bytes=max(need.values())) for kind in problem.cluster.types)
    small = replace(problem, cluster=replace(problem.cluster, types=kinds))
    made = schedule(small, plan, Context(options=GreedyOptions()))
    assert check_schedule(small, plan, made).status == "valid"


def test_it_keeps_to_memory_where_an_order_does() -> None:
    """One micro-batch at a time fits in 1F1B's memory less two: of the four numbers in flight none is smaller."""
    problem = equal_chain(4, 16)
    plan = stages_plan([[k] for k in range(4)])
    made = schedule(problem, plan, Context(options=GreedyOptions()))
    free = check_schedule(problem, plan, made).peak_bytes[0]
    least = 4  # 1F1B: the first of four stages holds four micro-batches of one byte
    assert free >= least
    small = replace(
        problem,
        cluster=replace(
            problem.cluster, types=tuple(replace(kind, memory_bytes=least) for kind in problem.cluster.types)
        ),
    )
    verdict = check_schedule(small, plan, schedule(small, plan, Context(options=GreedyOptions())))
    assert (verdict.status, verdict.peak_bytes[0]) == ("valid", least)


@pytest.mark.parametrize("room", [2, 3])
def test_where_memory_is_short_it_is_as_fast_as_the_best_numbers_in_flight(room: int) -> None:
    """All numbers that four stages may keep in flight are tried; the first has room for some, others for all."""
    problem = chain_problem(
        [10] * 4, [20] * 4, cluster(4, memory=10 * room), saved=[10, 1, 1, 1], mode="sync", mini_batch=8
    )
    plan = stages_plan([[k] for k in range(4)])
    tables = Tables.of(CostModel(problem), plan, 8)
    numbers = itertools.product(range(1, 5), repeat=4)
    ranks = [GreedyOrder(tables, list(caps), False).rank for caps in numbers]
    assert (0, ns(problem, plan)) == min(ranks)


def test_pipelines_in_both_directions() -> None:
    problem = equal_chain(4, 8)
    plan = mirrored_plan([[k] for k in range(4)])
    one = stages_plan([[k] for k in range(4)])
    assert ns(problem, plan) <= ns(problem, one) + 4 * 30


def test_stages_of_several_sizes_are_refused() -> None:
    plan = stages_plan([[0], [1]])
    mixed = replace(plan, stages=(replace(plan.stages[0], micro_batch=2), plan.stages[1]))
    problem = chain_problem([1, 1], [1, 1], cluster(2), mode="sync", mini_batch=4)
    with pytest.raises(UnsupportedProblem, match="one micro-batch for all stages"):
        schedule(problem, mixed, Context(options=GreedyOptions()))
    large = chain_problem([1, 1], [1, 1], cluster(2), mode="sync", mini_batch=2**20)
    with pytest.raises(UnsupportedProblem, match="larger micro-batch"):
        schedule(large, plan, Context(options=GreedyOptions()))


def clock_ns(problem: Problem, plan: Plan, caps: list[int]) -> tuple[int, list[list[tuple[str, int, int]]]]:
    """The order of one number in flight, and when it ends by greedy's own clock."""
    tables = Tables.of(CostModel(problem), plan, problem.mini_batch)
    run = GreedyOrder(tables, caps, False)
    return run.makespan_ns, run.orders


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=4))
def test_its_clock_is_the_simulators_where_no_message_waits(figures: list[tuple[int, int, int]]) -> None:
    """Transfers included: on links that carry any number at a time both run tasks at the same instants."""
    stages = len(figures)
    problem = chain_problem(
        [f for f, _, _ in figures],
        [b for _, b, _ in figures],
        cluster(stages, link_mode="delay"),
        activations=[0, *(size for _, _, size in figures)],
        mode="sync",
        mini_batch=4,
    )
    plan = stages_plan([[k] for k in range(stages)])
    ended, orders = clock_ns(problem, plan, [stages - k for k in range(stages)])
    lanes = tuple(shared_lane(CostModel(problem), plan, [k], order) for k, order in enumerate(orders))
    assert simulate(problem, plan, FiniteSchedule(lanes=lanes)).total_ns == ended


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=4),
    st.booleans(),
)
def test_the_memory_that_it_counts_is_the_checks(figures: list[tuple[int, int, int]], split_too: bool) -> None:
    """A micro-batch is held until its backward, or its weight gradient, has ended."""
    stages = len(figures)
    problem = chain_problem(
        [f for f, _, _ in figures],
        [b for _, b, _ in figures],
        cluster(stages),
        saved=[saved for _, _, saved in figures],
        weights=[3] * stages,
        mode="sync",
        mini_batch=6,
    )
    problem = split(problem) if split_too else problem
    plan = stages_plan([[k] for k in range(stages)])
    tables = Tables.of(CostModel(problem), plan, 6)
    for caps, parts in greedy._tried(tables, tables.count, [0] * stages):
        run = GreedyOrder(tables, caps, parts)
        lanes = tuple(shared_lane(CostModel(problem), plan, [k], order) for k, order in enumerate(run.orders))
        verdict = check_schedule(problem, plan, FiniteSchedule(lanes=lanes))
        assert verdict.peak_bytes == dict(enumerate(run.peak_bytes))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_its_clock_is_the_simulators_where_messages_wait_for_links_and_nodes(seed: int) -> None:
    """To the ns: stages on any devices, one tensor between two of them, links of one way or both, ports."""
    draw = random.Random(seed)
    operators, devices = draw.randint(3, 8), draw.choice((4, 6, 8))
    on = nodes(
        devices,
        latency_s=draw.choice((0, 3e-9)),
        shared=draw.choice((0.5e9, 1e9, 1.5e9)),
        link_mode=draw.choice(("full", "half")),
    )
    edges = [
        (i, tuple(sorted({draw.randint(i + 1, operators - 1) for _ in range(2)})), draw.randint(1, 30))
        for i in range(operators - 1)
    ]
    problem = dag_problem(
        [draw.randint(1, 20) for _ in range(operators)],
        [draw.randint(1, 40) for _ in range(operators)],
        edges,
        on,
        mini_batch=8,
    )
    some = draw.sample(range(devices), devices)
    sets = draw.choice(([(each,) for each in some], [(0, 1, 2), (3,), *((each,) for each in range(4, devices))]))
    homes = [draw.choice(sets) for _ in range(operators)]
    plan = stages_plan([[k] for k in range(operators)])
    stages = tuple(
        replace(stage, devices=home, data_parallel=len(home))
        for stage, home in zip(plan.stages, homes, strict=True)
    )
    plan = replace(plan, stages=stages, placement=placement_kind_of(homes))
    model = CostModel(problem)
    tables = Tables.of(model, plan, 8, links=True)
    for caps in itertools.chain(*numbers_in_flight(tables, 8)):
        order = GreedyOrder(tables, caps, False)
        lanes = tuple(
            shared_lane(model, plan, [s for s, at in enumerate(tables.lane_of) if at == lane], tasks)
            for lane, tasks in enumerate(order.orders)
        )
        assert simulate(problem, plan, FiniteSchedule(lanes=lanes)).total_ns == order.makespan_ns
