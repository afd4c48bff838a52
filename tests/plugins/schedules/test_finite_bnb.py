"""The scheduler `finite-bnb` against every order of small plans."""

import random
from collections.abc import Iterator
from itertools import product
from math import prod

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of, micro_batches_of
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.hooks.context import Context
from pipebench.simulation.step_time import StepTime
from pipebench_schedules.finite_bnb import schedule
from pipebench_schedules.finite_tasks import job_shop
from pipebench_schedules.order_tree import OrderTree
from pipebench_schedules.plugin import FiniteBranchOptions
from tests.builders import chain_problem, cluster, dag_problem, mirrored_plan, stages_plan
from tests.nightly import mostly_at_night
from tests.plugins.running import services
from tests.plugins.schedules.test_greedy import split

Task = tuple[str, int, int]
MOST_ORDERS = 1000


def drawn(number: int) -> tuple[Problem, Plan]:
    """Two or three operators on one or two devices, links of each mode, memory that often binds; a plan of it."""
    draw = random.Random(number)
    while True:
        count = draw.choice([2, 3])
        tensors = [(at, (at + 1,), draw.randint(0, 9)) for at in range(count - 1)]
        if count == 3 and draw.random() < 0.5:
            tensors = draw.choice(([(0, (1, 2), 5)], [(0, (2,), 4), (1, (2,), 7)]))
        problem = dag_problem(
            [draw.randint(0, 12) for _ in range(count)],
            [draw.randint(1, 20) for _ in range(count)],
            tensors,
            cluster(2, link_mode=draw.choice(["half", "full", "delay"])),
            weights=[draw.randint(0, 4) for _ in range(count)],
            saved=[draw.randint(0, 12) for _ in range(count)],
            mini_batch=draw.choice([2, 2, 4]),
            micro_batches=(1, 2),
        )
        if draw.random() < 0.3:
            problem = split(problem, draw.choice([0.25, 0.5]))
        homes = [draw.randint(0, 1) for _ in range(count)]
        stages = tuple(
            Stage(operators=(f"op{at}",), devices=(home,), micro_batch=draw.choice([1, 2]))
            for at, home in enumerate(homes)
        )
        plan = Plan(stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))
        if check_plan(problem, plan).status == "invalid" or orders_of(problem, plan) > MOST_ORDERS:
            continue
        if draw.random() < 0.6:
            verdicts = (check_schedule(problem, plan, made) for made in all_schedules(problem, plan, False))
            peak = max(next(each for each in verdicts if each.status == "valid").peak_bytes.values())
            kinds = tuple(
                replace(kind, memory_bytes=max(1, peak - draw.randint(0, 30))) for kind in problem.cluster.types
            )
            problem = replace(problem, cluster=replace(problem.cluster, types=kinds))
        return problem, plan


def orders_of(problem: Problem, plan: Plan) -> int:
    """About how many orders there are, without split gradients."""
    _, lane_of = lanes_of(plan)
    found = []
    for lane in set(lane_of):
        stages = [stage for stage, at in zip(plan.stages, lane_of, strict=True) if at == lane]
        tasks = sum(2 * micro_batches_of(problem, plan, stage) for stage in stages)
        found.append(prod(range(1, tasks + 1)) // 2 ** (tasks // 2))
    return prod(found)


def all_schedules(problem: Problem, plan: Plan, in_parts: bool) -> Iterator[FiniteSchedule]:
    """Every order of every lane in which a micro-batch goes forward before it goes back."""
    model = CostModel(problem)
    sets, lane_of = lanes_of(plan)
    words = "FIW" if in_parts else "FB"
    of_lane = []
    for lane in range(len(sets)):
        jobs = [
            tuple((kind, stage, number) for kind in words)
            for stage, at in enumerate(lane_of)
            if at == lane
            for number in range(micro_batches_of(problem, plan, plan.stages[stage]))
        ]
        behind = [
            ("R", stage, 0)
            for stage, at in enumerate(lane_of)
            if at == lane and model.needs_update_task(plan.stages[stage], plan)
        ]
        of_lane.append([[*order, *behind] for order in merged(jobs)])
    for orders in product(*of_lane):
        yield FiniteSchedule(
            lanes=tuple(
                Lane(
                    devices=devices,
                    stage=tuple(stage for _, stage, _ in order),
                    micro_batch=tuple(number for _, _, number in order),
                    kinds="".join(kind for kind, _, _ in order),
                )
                for devices, order in zip(sets, orders, strict=True)
            )
        )


def merged(jobs: list[tuple[Task, ...]]) -> Iterator[list[Task]]:
    """Every way to run the jobs one task at a time, each in its order."""
    if not any(jobs):
        yield []
    for at, job in enumerate(jobs):
        if job:
            for rest in merged([*jobs[:at], job[1:], *jobs[at + 1 :]]):
                yield [job[0], *rest]


def shortest_ns(problem: Problem, plan: Plan, in_parts: bool = False) -> int | None:
    """Of every order that is valid; None where there is none."""
    found = []
    for made in all_schedules(problem, plan, in_parts):
        if check_schedule(problem, plan, made).status == "valid":
            found.append(StepTime(plan, made).ns(problem))
    return min(found, default=None)


def searched(problem: Problem, plan: Plan, **options: int) -> tuple[int | None, Context]:
    """Its time, where it finds a valid order."""
    context = Context(options=FiniteBranchOptions(**options))
    try:
        made = schedule(problem, plan, context)
    except InfeasibleProblem:
        return None, context
    assert check_schedule(problem, plan, made).status == "valid"
    return StepTime(plan, made).ns(problem), context


@pytest.mark.parametrize("number", [*mostly_at_night(range(200), always=range(6)), 301, 506])
def test_no_order_is_shorter(number: int) -> None:
    problem, plan = drawn(number)
    whole = shortest_ns(problem, plan)
    split_too = CostModel(problem).stage_times(plan.stages[0], plan).weight_gradient > 0
    found, context = searched(problem, plan)
    assert context.counters["unproven"] == 0
    if not split_too:
        assert found == whole
    elif whole is not None:
        assert found is not None
        assert found <= whole


@pytest.mark.parametrize("number", mostly_at_night(range(100), always=(0, 11, 12, 44)))
def test_no_order_that_keeps_to_what_stages_declare_is_shorter(number: int) -> None:
    problem, plan = drawn(number)
    draw = random.Random(number)
    plan = plan.with_in_flight([draw.choice([0, 1, 2]) * stage.micro_batch for stage in plan.stages])
    found, context = searched(problem, plan)
    assert context.counters["unproven"] == 0
    if not CostModel(problem).stage_times(plan.stages[0], plan).weight_gradient:
        assert found == shortest_ns(problem, plan)


@pytest.mark.parametrize("number", mostly_at_night(range(40), always=range(2)))
def test_no_order_of_split_gradients_is_shorter(number: int) -> None:
    draw = random.Random(number)
    problem = split(
        chain_problem(
            [draw.randint(1, 9) for _ in range(2)],
            [draw.randint(1, 20) for _ in range(2)],
            cluster(2, memory=draw.choice([10**9, 30]), link_mode=draw.choice(["half", "delay"])),
            activations=[draw.randint(0, 9) for _ in range(3)],
            mode="sync",
            mini_batch=draw.choice([1, 2]),
        )
    )
    plan = stages_plan([[0], [1]])
    times = [shortest_ns(problem, plan, in_parts) for in_parts in (False, True)]
    found, context = searched(problem, plan)
    assert context.counters["unproven"] == 0
    assert found == min((each for each in times if each is not None), default=None)


@pytest.mark.parametrize("number", range(20))
def test_the_bound_before_the_search_is_never_above_an_order(number: int) -> None:
    problem, plan = drawn(1000 + number)
    whole, _ = searched(problem, plan)
    parts = job_shop(problem, plan, split=True)
    assert whole is None or OrderTree(parts, 0, False, lambda _: 0, lambda: None).bound() <= whole


def shared_device() -> tuple[Problem, Plan]:
    """Three stages in a row, the first and the last on one device."""
    problem = chain_problem([3, 9, 4], [5, 6, 9], cluster(2), mode="sync", mini_batch=4)
    stages = tuple(
        Stage(operators=(f"op{at}",), devices=(home,), micro_batch=1) for at, home in enumerate((0, 1, 0))
    )
    return problem, Plan(stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))


def test_it_beats_the_rules_where_devices_are_shared() -> None:
    problem, plan = shared_device()
    greedy = StepTime(plan, services().schedule("greedy", problem, plan)).ns(problem)  # type: ignore[arg-type]
    found, context = searched(problem, plan)
    assert found is not None
    assert found < greedy
    assert context.counters["unproven"] == 0


def test_a_limit_of_nodes_leaves_an_order_that_is_not_proven() -> None:
    problem, plan = shared_device()
    whole, _ = searched(problem, plan)
    found, context = searched(problem, plan, nodes=25)  # a root and 24 tasks: the first order
    assert context.counters == {"nodes": 25, "unproven": 1}
    assert whole is not None
    assert found is not None
    assert found > whole


def test_only_orders_below_a_time_are_looked_for() -> None:
    problem, plan = drawn(0)
    best, _ = searched(problem, plan)
    assert best is not None
    assert searched(problem, plan, below_ns=best + 1)[0] == best
    assert searched(problem, plan, below_ns=best)[0] is None


def test_it_stays_inside_the_reserve_where_it_can() -> None:
    problem = chain_problem(
        [5, 5], [9, 9], cluster(2, memory=1000), activations=[20, 20, 20], mode="sync", mini_batch=4
    )
    plan = stages_plan([[0], [1]])
    made = schedule(problem, plan, Context(options=FiniteBranchOptions()))
    peak = max(check_schedule(problem, plan, made).peak_bytes.values())
    kept = replace(problem, pins=Pins(reserve=1 - (peak - 1) / 1000))
    less = schedule(kept, plan, Context(options=FiniteBranchOptions()))
    assert check_schedule(kept, plan, made).fit == "tight"
    assert check_schedule(kept, plan, less).fit == "fits"


def no_room() -> tuple[Problem, Plan]:
    """The second forward of the first stage could start at once, and would leave no room for the last stage."""
    problem = chain_problem(
        [2, 9, 2], [2, 9, 2], cluster(2, memory=60), saved=[20, 1, 30], mode="sync", mini_batch=2
    )
    return problem, shared_device()[1]


def test_a_lane_waits_for_a_task_that_needs_the_memory_of_one_that_could_start() -> None:
    found, context = searched(*no_room())
    assert (found, context.counters["unproven"]) == (48, 0)


@pytest.mark.nightly
def test_no_order_is_shorter_where_it_waits() -> None:
    assert shortest_ns(*no_room()) == 48


def test_what_it_does_not_order() -> None:
    problem = chain_problem([1, 2], [3, 4], cluster(4), mode="sync", mini_batch=4)
    in_turn = stages_plan([[0], [1]], replicas=[2, 1])
    in_turn = replace(in_turn, stages=(replace(in_turn.stages[0], replicas="round_robin"), in_turn.stages[1]))
    for plan in (in_turn, mirrored_plan([[0], [1]])):
        with pytest.raises(UnsupportedProblem):
            schedule(problem, plan, Context(options=FiniteBranchOptions()))
    with pytest.raises(PipebenchError):
        FiniteBranchOptions(nodes=0)
