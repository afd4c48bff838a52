"""Bounds against plans of several pipelines and pairs: every plan of tiny chains, and simulated random orders."""

from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.bounds.memory import samples_at_once
from pipebench.check import check_pins, check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.simulate import simulate
from pipebench.simulation.tasks import Deadlock
from tests.builders import chain_problem, cluster, mirrored_plan, stages_plan
from tests.check.orders import lane
from tests.nightly import examples
from tests.simulation.random_plans import executable_schedules, planned_problems

HEALTH = list(HealthCheck)


def interleavings(first: list[str], second: list[str]) -> list[list[str]]:
    """Both rows of tasks in one, each in its own order."""
    total = len(first) + len(second)
    found = []
    for places in combinations(range(total), len(first)):
        rows = iter(first), iter(second)
        found.append([next(rows[0] if place in places else rows[1]) for place in range(total)])
    return found


def every_order(plan: Plan, device: int) -> list[list[str]]:
    """Every order of the two stages of a device, one micro-batch each, all-reduces at the end, with pairs."""
    here = [position for position, stage in enumerate(plan.stages) if stage.devices == (device,)]
    orders = interleavings(*([f"F{stage}.0", f"B{stage}.0"] for stage in here))
    paired = []
    for order in orders:
        for at in range(1, len(order)):
            if order[at - 1][0] == "F" and order[at][0] == "B" and order[at - 1][1:] != order[at][1:]:
                paired.append([*order[:at], f"+{order[at]}", *order[at + 1 :]])
    return [[*order, *(f"R{stage}.0" for stage in here)] for order in orders + paired]


def best(problem: Problem, plan: Plan) -> int:
    """The shortest of all orders, in ns."""
    times = []
    for lanes in product(every_order(plan, 0), every_order(plan, 1)):
        schedule = FiniteSchedule(lanes=tuple(lane((d,), " ".join(order)) for d, order in enumerate(lanes)))
        try:
            times.append(simulate(problem, plan, schedule).total_ns)
        except Deadlock:
            continue
    return min(times)


@settings(max_examples=examples(12), deadline=None, suppress_health_check=HEALTH)
@given(st.data())
def test_no_order_of_two_pipelines_on_two_devices_is_below_the_bounds(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 4))
    times = st.lists(st.integers(0, 20), min_size=size, max_size=size)
    problem = chain_problem(
        data.draw(times), data.draw(times), cluster(2), weights=data.draw(times), saved=data.draw(times),
        mode="sync", mini_batch=2,
    )  # fmt: skip
    problem = replace(problem, overlap=data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])))
    for cut in range(1, size):
        plan = mirrored_plan([list(range(cut)), list(range(cut, size))])
        shortest = best(problem, plan)
        for pins in (Pins(), Pins(data_parallel=2), Pins(micro_batch=1, data_parallel=2, pipeline=2)):
            pinned = replace(problem, pins=pins)
            assert check_pins(pinned, plan).status == "valid"
            assert time_bound(pinned).ns <= shortest
            assert time_bound(pinned, split=True).ns <= shortest


@pytest.mark.parametrize(("overlap", "expected"), [(0.0, 40), (0.5, 40), (1.0, 40)])
def test_two_directions_reach_the_bound_of_the_work(overlap: float, expected: int) -> None:
    """Two equal stages both ways keep two devices busy throughout: 2 micro-batches x 2 stages x 20 ns / 2."""
    problem = chain_problem([10, 10], [10, 10], cluster(2), mode="sync", mini_batch=2)
    assert best(problem, mirrored_plan([[0], [1]])) == time_bound(problem).ns == expected
    paired = replace(problem, overlap=overlap)
    assert time_bound(paired).ns <= best(paired, mirrored_plan([[0], [1]]))


def test_a_pair_hides_no_more_than_the_bound_allows() -> None:
    """One operator of 10 and 30 ns, three micro-batches, B0 beside F1 and B1 beside F2: 40 + 30 + 30 of 120."""
    problem = replace(
        chain_problem([10], [30], cluster(1), mode="sync", mini_batch=3, pins=Pins(micro_batch=1)), overlap=1.0
    )
    plan = Plan(stages=mirrored_plan([[0]]).stages[:1])
    schedule = FiniteSchedule(lanes=(lane((0,), "F0.0 F0.1 +B0.0 F0.2 +B0.1 B0.2"),))
    total = simulate(problem, plan, schedule).total_ns
    assert total == 100
    bound = time_bound(problem)
    assert (bound.parts["work"], bound.parts["operator"]) == (3 * 29, 3 * 29)
    assert bound.ns <= total


def test_two_tasks_at_once_of_a_stage_that_recomputes_hold_one_full_set() -> None:
    """1000 bytes of it, in 16 pairs of 100 and 300 ns that take 300 ns; other devices are full of weights."""
    free = chain_problem(
        [100, 100], [200, 100], cluster(2, memory=4000), weights=[1500, 2000], saved=[1000, 0], mode="sync",
        mini_batch=16, pins=Pins(micro_batch=1, data_parallel=1),
    )  # fmt: skip
    problem = replace(free, overlap=1.0)
    stages = tuple(replace(stage, recompute="stage") for stage in stages_plan([[0], [1]]).stages)
    paired = " ".join(f"F0.{at + 2} +B0.{at}" for at in range(14))
    lanes = (
        lane((0,), f"F0.0 F0.1 {paired} B0.14 B0.15"),
        lane((1,), " ".join(f"F1.{at} B1.{at}" for at in range(16))),
    )
    plan, schedule = Plan(stages=stages), FiniteSchedule(lanes=lanes)
    assert check_schedule(problem, plan, schedule).status == "valid"
    bound = time_bound(problem)
    assert bound.kind == "memory"
    assert 4700 < bound.ns <= simulate(problem, plan, schedule).total_ns == 5200


@settings(max_examples=examples(150), deadline=None, suppress_health_check=HEALTH)
@given(st.data())
def test_no_random_order_is_below_the_bounds(data: st.DataObject) -> None:
    """With the pins that the plan honours, any of them, under any order with pairs."""
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    replicas = {stage.data_parallel for stage in plan.stages}
    sizes = {stage.micro_batch for stage in plan.stages}
    pins = Pins(
        data_parallel=replicas.pop() * plan.all_pipelines
        if len(replicas) == 1 and data.draw(st.booleans())
        else None,
        tensor_parallel=data.draw(st.sampled_from([None, 1])),
        pipeline=data.draw(st.sampled_from([None, len({stage.devices for stage in plan.stages})])),
        micro_batch=sizes.pop() if len(sizes) == 1 and data.draw(st.booleans()) else None,
    )
    problem = replace(problem, pins=pins)
    assert check_pins(problem, plan).status == "valid"
    total = simulate(problem, plan, schedule).total_ns
    peaks = check_schedule(problem, plan, schedule).peak_bytes
    for split in (False, True):
        assert time_bound(problem, split).ns <= total
        assert memory_bound(problem, split).value <= max(peaks.values())


def test_pipelines_that_run_one_after_the_other_hold_one_sample_at_once() -> None:
    """Four stages of 9 saved bytes both ways, one micro-batch each: no device holds two of them."""
    free = chain_problem([1] * 4, [1] * 4, cluster(4), saved=[9] * 4, mode="sync", mini_batch=2)
    plan = mirrored_plan([[0], [1], [2], [3]])
    lanes = (lane((d,), f"F{d}.0 B{d}.0 F{7 - d}.0 B{7 - d}.0") for d in range(4))
    schedule = FiniteSchedule(lanes=tuple(lanes))
    pinned = replace(free, pins=Pins(data_parallel=2))
    assert check_pins(pinned, plan).status == "valid"
    assert check_schedule(pinned, plan, schedule).peak_bytes == dict.fromkeys(range(4), 9)
    assert memory_bound(pinned).value == 9


@pytest.mark.parametrize(
    ("pins", "expected"), [(Pins(), 1), (Pins(micro_batch=2), 2), (Pins(data_parallel=4, pipeline=1), 1)]
)
def test_samples_at_once(pins: Pins, expected: int) -> None:
    """Four replicas that take micro-batches in turn save one sample at a time, one of them."""
    problem = chain_problem([1] * 4, [1] * 4, cluster(8), mode="sync", mini_batch=8, pins=pins)
    assert samples_at_once(problem) == expected
