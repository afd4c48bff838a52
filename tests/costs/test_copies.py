"""Copies of a pipeline on links of other kinds: a message takes as long as in the copy where it takes longest."""

from collections.abc import Iterator
from random import Random
from typing import get_args

import pytest
from msgspec.structs import replace

from pipebench.bench.score import judge
from pipebench.certificates.check import check
from pipebench.certificates.write import certificate
from pipebench.costs.links import flows
from pipebench.costs.model import CostModel
from pipebench.costs.placement import copies_that_differ, in_copy, kinds_of_copies
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, nodes, stages_plan
from tests.plugins.running import services

TWO = stages_plan([[0], [1]])


def astride(copies: int = 2, size: int = 3, shared: float | None = None) -> Problem:
    """Two operators; with copies of two devices on nodes of three every other copy is astride two nodes."""
    on = nodes(2 * copies, size, within=10e9, between=0.1e9, shared=shared)
    return chain_problem([10, 10], [10, 10], on, mode="sync", mini_batch=2 * copies, activations=[0, 10, 0])


def taken_ns(problem: Problem, plan: Plan) -> int:
    return simulate(problem, plan, services().schedule("1f1b", problem, plan)).total_ns


def each_copy(problem: Problem, plan: Plan) -> Iterator[tuple[Problem, Plan]]:
    """Each copy alone, where it stands."""
    alone = replace(problem, mini_batch=problem.mini_batch // plan.copies)
    for copy in range(plan.copies):
        stages = tuple(replace(stage, devices=in_copy(plan, stage.devices, copy)) for stage in plan.stages)
        yield alone, replace(plan, stages=stages, copies=1)


def test_the_copy_astride_two_nodes_says_how_long_it_takes() -> None:
    """One message there and back of 1 ns inside a node, of 100 ns between nodes."""
    problem, plan = astride(), replace(TWO, copies=2)
    assert [taken_ns(*alone) for alone in each_copy(problem, plan)] == [62, 340]
    assert taken_ns(problem, plan) == 340
    assert taken_ns(astride(size=2), plan) == 62


@pytest.mark.parametrize(
    ("devices", "size", "copies", "kinds"),
    [
        (2, 4, 4, (0,)),
        (4, 4, 3, (0,)),
        (8, 4, 2, (0,)),
        (3, 4, 4, (1, 2, 0)),
        (2, 3, 3, (1, 0)),
        (6, 8, 4, (1, 2, 0)),
    ],
)
def test_copies_that_nodes_divide_alike_are_of_one_kind(
    devices: int, size: int, copies: int, kinds: tuple[int, ...]
) -> None:
    assert kinds_of_copies(nodes(24, size), range(devices), copies) == kinds


def drawn(draw: Random) -> tuple[Problem, Plan]:
    """A chain on nodes of any size, in racks or not, with replicas that share or take turns, and copies."""
    sizes = sorted({draw.choice([2, 3, 4]), draw.choice([5, 6, 8])})
    shared = [draw.choice([None, 0.05e9, 2e9]) for _ in range(3)]
    levels = [
        LinkLevel(
            name=f"level {at}", group=group, latency_s=draw.choice([0, at, 3 - at]) * 1e-9,
            bandwidth_bytes_s=draw.choice([4e9, 1e9, 0.2e9]), shared_bandwidth_bytes_s=shared[at],
        )
        for at, group in enumerate([*sizes, 24][-3:])
    ]  # fmt: skip
    mode: LinkMode = draw.choice(get_args(LinkMode))
    on = Cluster(name="drawn", types=(DeviceType(name="gpu", memory_bytes=10**15),), devices=("gpu",) * 24,
                 levels=tuple(levels), link_mode=mode)  # fmt: skip
    count = draw.randint(2, 4)
    replicas = [draw.choice([1, 1, 2, 3]) for _ in range(count)]
    plan = stages_plan([[at] for at in range(count)], micro_batch=6, replicas=replicas)
    turns = draw.random() < 0.3
    stages = tuple(
        replace(each, replicas="round_robin" if turns and each.data_parallel > 1 else "split")
        for each in plan.stages
    )
    copies = draw.choice([each for each in (2, 3, 4) if each * sum(replicas) <= 24] or [1])
    problem = chain_problem(
        [draw.randint(0, 30) for _ in range(count)], [draw.randint(0, 30) for _ in range(count)], on,
        mode="sync", mini_batch=24 * copies, activations=[draw.randint(0, 40) for _ in range(count + 1)],
    )  # fmt: skip
    return problem, replace(plan, stages=stages, copies=copies)


def test_a_message_takes_as_long_as_in_the_slowest_copy() -> None:
    """Against each copy alone, where it stands: every flow, and the whole.

    Where messages wait for each other they may go in another order, in which a copy alone takes a little longer.
    """
    draw, differ = Random(0), 0
    for _ in range(300):
        problem, plan = drawn(draw)
        every = [flows(CostModel(one), other) for one, other in each_copy(problem, plan)]
        slowest = [max(each.duration_ns for each in same) for same in zip(*every, strict=True)]
        found = flows(CostModel(problem), plan)
        assert [each.duration_ns for each in found] == slowest
        kinds = copies_that_differ(problem.cluster, plan)
        for each, same in zip(found, zip(*every, strict=True), strict=True):
            alone = [(port[:3], ns, copy) for copy in kinds for port, ns in same[copy].ports]
            assert [(port[:3], ns, port[3]) for port, ns in each.ports] == alone
        differ += len(kinds) > 1
        if not plan.takes_turns:
            waits = problem.cluster.link_mode != "delay"
            longest = max(taken_ns(*alone) for alone in each_copy(problem, plan))
            assert longest <= (1.1 if waits else 1.0) * taken_ns(problem, plan)
    assert differ > 100


def test_messages_that_share_a_port_in_one_copy_wait_for_each_other() -> None:
    """Three stages, four copies, nodes of four: in the third copy the second and third stage send over one way."""
    on = nodes(12, 4, within=1e12, between=1e12, shared=1e9)
    problem = chain_problem([10] * 3, [10] * 3, on, mode="sync", mini_batch=8, activations=[0, 5000, 5000, 0])
    plan = replace(stages_plan([[0], [1], [2]]), copies=4)
    every = [taken_ns(*alone) for alone in each_copy(problem, plan)]
    assert len(set(every)) > 1
    assert taken_ns(problem, plan) >= max(every)


@pytest.mark.parametrize("shared", [None, 0.05e9])
def test_the_certificate_of_copies_astride_nodes_proves_their_time(shared: float | None) -> None:
    problem, plan = astride(4, shared=shared), replace(TWO, copies=4)
    schedule = services().schedule("1f1b", problem, plan)
    assert judge(problem, plan, schedule).status == "valid"
    made = certificate(problem, plan, schedule, {})
    assert check(made.data).time_ns == taken_ns(problem, plan) > 300
