"""The bound from links that cannot carry a tensor in the time, against closed forms and enumerated plans."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import time_bound
from pipebench.bounds.links import fewest_devices
from pipebench.check import check_plan, check_schedule
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.every_plan import partitions
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples
from tests.plugins.running import services

ALONE = Pins(data_parallel=1)


def packed(loads: list[int], capacity: int) -> int:
    """The fewest devices that hold the loads, by trying all."""
    for count in range(1, len(loads) + 1):
        for places in product(range(count), repeat=len(loads)):
            held = [sum(load for load, at in zip(loads, places, strict=True) if at == bin) for bin in range(count)]
            if max(held) <= capacity:
                return count
    return 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(12, 20))
def test_no_packing_needs_fewer_devices(loads: list[int], capacity: int) -> None:
    needed, threshold = fewest_devices(np.array(sorted(loads)), capacity)
    assert -(-sum(loads) // capacity) <= needed <= packed(loads, capacity)
    assert 2 * threshold <= capacity


@pytest.mark.parametrize(
    ("loads", "capacity", "devices"),
    [([6, 6, 6], 10, 3), ([4, 5, 5, 6], 10, 2), ([3, 3, 7, 8], 10, 3), ([5, 5, 5], 10, 2), ([], 1, 0)],
)
def test_known_packings(loads: list[int], capacity: int, devices: int) -> None:
    assert fewest_devices(np.array(loads, np.int64), capacity)[0] == devices


@pytest.mark.parametrize(
    ("link_mode", "message_ns", "bound_ns", "kind"),
    [
        ("half", 100, 240, "links"),
        ("half", 25, 200, "links"),
        ("full", 40, 160, "links"),
        ("full", 25, 120, "work"),
        ("delay", 100, 120, "work"),
    ],
)
def test_two_operators_part_only_where_the_link_can_carry_what_is_between(
    link_mode: LinkMode, message_ns: int, bound_ns: int, kind: str
) -> None:
    """Four samples of 60 ns: 240 ns on one device, 120 on two, or as long as the link is busy there and back."""
    on = cluster(2, bandwidth=1e9, link_mode=link_mode)
    problem = chain_problem([10, 10], [20, 20], on, activations=[0, message_ns, 0], mini_batch=4, pins=ALONE)
    bound = time_bound(problem)
    assert (bound.ns, bound.kind) == (bound_ns, kind)


def test_three_operators_fill_two_devices_as_wholes() -> None:
    problem = chain_problem([2, 2, 2], [4, 4, 4], cluster(2), pins=ALONE)
    assert time_bound(problem).ns == 12  # 18 / 2 = 9, but two of three are together


def test_devices_without_the_first_bundle_wait_for_it() -> None:
    """The first two stay together, 18 ns; three operators of 12 ns come behind them, on either of two devices.

    The device without the bundle waits 6 ns before its first task and 12 ns behind its last one. To end by 42 ns
    it holds one or two of the three.
    """
    tensors = [(0, (1,), 900), (1, (2,), 0), (1, (3,), 0), (1, (4,), 0)]
    problem = dag_problem([3, 3, 4, 4, 4], [6, 6, 8, 8, 8], tensors, cluster(2), pins=ALONE)
    bound = time_bound(problem)
    assert (bound.ns, bound.kind) == (42, "links")
    assert max(ns for kind, ns in bound.parts.items() if kind != "links") < 42


def test_a_device_waits_no_longer_than_for_its_earliest_operator() -> None:
    """One device holds all but the branch that is ready first; the best of all placements takes 48 ns too."""
    tensors = [(0, (1,), 900), (1, (2,), 0), (2, (3,), 0), (1, (4,), 0)]
    problem = dag_problem([2, 2, 3, 1, 1], [4, 4, 6, 2, 2], tensors, cluster(2), pins=ALONE, mini_batch=3)
    best = []
    for places in product(range(2), repeat=4):
        stages = tuple(
            Stage(operators=(f"op{number}",), devices=(place,), micro_batch=1)
            for number, place in enumerate((0, *places))
        )
        plan = Plan(stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))
        if check_plan(problem, plan).status == "valid":
            schedule = services().schedule("greedy", problem, plan)
            best.append(simulate(problem, plan, schedule).total_ns)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, min(best)) == ("links", 48, 48)


def test_replicas_send_in_parts_so_nothing_is_said() -> None:
    on = cluster(2, bandwidth=1e9, link_mode="half")
    problem = chain_problem([10, 10], [20, 20], on, activations=[0, 900, 0], mini_batch=4)
    assert "links" not in time_bound(problem).parts


@st.composite
def slow_links(draw: st.DrawFn) -> Problem:
    """Two to four operators on two or three devices, one replica each, with messages about as long as the work."""
    size = draw(st.integers(2, 4))
    numbers = st.lists(st.integers(0, 20), min_size=size, max_size=size)
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), min_size=1, max_size=4)))
    problem = dag_problem(
        draw(numbers), draw(numbers), [(i, (j,), draw(st.integers(0, 60))) for i, j in edges],
        cluster(draw(st.integers(2, 3)), link_mode=draw(st.sampled_from(["half", "full", "delay"]))),
        weights=draw(numbers), mini_batch=draw(st.sampled_from([1, 2, 4])),
        micro_batches=draw(st.sampled_from([(1,), (1, 4)])), mode=draw(st.sampled_from(["sync", "async"])),
    )  # fmt: skip
    return replace(problem, pins=replace(ALONE, micro_batch=draw(st.sampled_from([None, None, 1]))))


def plans_on_devices(problem: Problem, random: Random) -> list[Plan]:
    """Partitions into stages, each on any device; several may share one."""
    found = []
    for groups in partitions([operator.name for operator in problem.profile.graph.operators]):
        places = [random.randrange(problem.cluster.size) for _ in groups]
        used = {place: number for number, place in enumerate(dict.fromkeys(places))}
        size = random.choice([b for b in range(1, problem.mini_batch + 1) if problem.mini_batch % b == 0])
        stages = tuple(
            Stage(
                operators=tuple(group),
                devices=(used[place],),
                micro_batch=problem.pins.micro_batch or size,
                recompute=random.choice(["none", "none", "stage"]),
            )
            for group, place in zip(groups, places, strict=True)
        )
        plan = Plan(stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))
        if check_plan(problem, plan).status == "valid":
            found.append(plan)
    return found


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(slow_links(), st.randoms(use_true_random=False))
def test_no_plan_on_slow_links_is_below_the_bound(problem: Problem, random: Random) -> None:
    bound = time_bound(problem)
    for plan in plans_on_devices(problem, random):
        for scheduler in ("greedy",) if problem.regime.mode == "sync" else ("periodic-bnb", "1f1b*"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            if check_schedule(problem, plan, schedule).status != "valid":
                continue
            seconds = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
            assert bound.ns <= round(seconds * 1e9), (scheduler, plan, bound)
