"""The bound from groups of devices, against closed forms, plain enumeration and plans whose memory just fits."""

from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import time_bound
from pipebench.bounds.group_tables import GroupTables
from pipebench.bounds.groups import MOST_OPERATORS, Division, groups_proof
from pipebench.bounds.operators import every_stage_ns
from pipebench.bounds.partition import TOO_MANY, fewest_devices
from pipebench.check import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems
from tests.bounds.every_plan import partitions, plans
from tests.bounds.plain_groups_bound import PlainGroups
from tests.bounds.test_shared_bounds import with_memory, with_overhead
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples
from tests.plugins.running import services

ONE = Pins(data_parallel=1)


def fastest(problem: Problem, every: list[Plan]) -> int:
    """The shortest mini-batch of these plans, in ns."""
    found = []
    for plan in every:
        for scheduler in ("1f1b*", "1f1b-rr", "periodic-bnb", "greedy"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            if check_schedule(problem, plan, schedule).status == "valid":
                found.append(round(metrics(problem, plan, simulate(problem, plan, schedule)).seconds * 1e9))
    return min(found)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_fewest_devices_are_those_of_the_best_partition(data: st.DataObject) -> None:
    """Two sums, two groups: a set fits where both are at most what the group has less what the set lacks."""
    operators = data.draw(st.integers(1, 4))
    numbers = st.integers(0, 9)
    costs = np.array([[[data.draw(numbers) for _ in range(operators)] for _ in range(2)] for _ in range(2)])
    sets = 1 << operators
    waits = np.array([[data.draw(st.integers(0, 3)) for _ in range(sets)] for _ in range(2)])
    buffers = np.array([[data.draw(st.integers(0, 3)) for _ in range(sets)] for _ in range(2)])
    weights, devices, room = np.array([[1, 0, 1], [1, 2, 0]]), np.array([1, 3]), np.array([10, 5])

    def needed(group: list[str]) -> int:
        chosen = [int(name) for name in group]
        one = sum(1 << operator for operator in chosen)
        for at, count in enumerate(devices.tolist()):
            both = [
                costs[each, at, chosen].sum()
                <= weights[each, 0] * (room[0] - waits[weights[each, 2], one])
                + weights[each, 1] * (room[1] - buffers[at, one])
                for each in range(2)
            ]
            if all(both):
                return int(count)
        return TOO_MANY

    every = partitions([str(operator) for operator in range(operators)])
    expected = min(sum(map(needed, groups)) for groups in every)
    assert fewest_devices(costs, devices, weights, room, waits, buffers) == min(expected, TOO_MANY) or (
        expected >= TOO_MANY <= fewest_devices(costs, devices, weights, room, waits, buffers)
    )


def test_operators_are_on_one_device_each_as_wholes() -> None:
    """Three of 6 ns on two devices: two of them are together, which the mean of 9 ns does not know.

    Replicas would have to reduce gradients for 1000 ns.
    """
    problem = chain_problem([2, 2, 2], [4, 4, 4], cluster(2), weights=[1000] * 3)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, bound.parts["work"]) == ("groups", 12, 9)


def test_all_stages_have_one_micro_batch_size() -> None:
    """Each run takes 20 ns whatever its samples; the second operator's device holds one sample at a time.

    It could run its two samples in 40 ns while the first one runs both in 20, if their sizes could differ.
    """
    problem = chain_problem([10, 10], [10, 10], cluster(2, memory=13), saved=[1, 8], mini_batch=2, pins=ONE)
    (costs,) = problem.profile.costs
    same = tuple(replace(o, forward_s=(10e-9,) * 2, backward_s=(10e-9,) * 2) for o in costs.operators)
    costs = replace(costs, micro_batches=(1, 2), operators=same)
    problem = replace(problem, profile=replace(problem.profile, costs=(costs,)))
    bound = time_bound(problem)
    assert bound.ns == 40
    alone = Plan(stages=tuple(Stage(operators=(f"op{at}",), devices=(at,), micro_batch=1) for at in range(2)))
    assert fastest(problem, [alone]) == 40


def test_what_crosses_between_groups_needs_buffers() -> None:
    """Both on one device do not fit: 2 x 3 x 5 bytes of state. Apart they need 15 and 2 x 6 for the tensor."""
    problem = chain_problem(
        [3, 3], [3, 3], cluster(2, memory=27), weights=[5, 5], activations=[0, 6, 0], saved=[0, 0]
    )
    assert time_bound(problem).ns == 6
    less = replace(problem, cluster=cluster(2, memory=26))
    assert groups_proof(less, 0, time_bound(problem).ns) is None  # no plan fits at all, so nothing is said
    pinned = replace(less, pins=ONE)
    tables = GroupTables(pinned)
    assert {group.buffers for case in tables.cases for group in case.groups if group.devices == 1} == {(12,)}


def test_tables_of_a_group() -> None:
    """Runs of 3 and 4 ns a sample, 12 bytes of weights, 5 saved a sample, tensors of 2 bytes; mini-batch 6."""
    problem = chain_problem(
        [3, 3], [4, 4], cluster(2), activations=[0, 2, 0], weights=[12, 12], saved=[5, 5], mini_batch=6
    )
    found = {
        (case.copies, case.micro_batch, group.devices, group.turns): group
        for case in GroupTables(problem).cases
        for group in case.groups
    }
    # Six samples on one device; two replicas that share micro-batches of two run three of one sample each, and
    # reduce 12 bytes: 2 / 2 x 12 ns less 1. Two devices of one replica would run both samples, which takes 42 ns.
    assert found[1, 2, 1, 1].rows[0] == ((42, 42, 36, 10),)
    assert found[1, 2, 2, 1].rows[0] == ((21 + 11, 21, 36, 5),)
    # In turn each runs whole micro-batches: of a pattern one and a half of three of them, of an order two.
    assert found[1, 2, 2, 2].rows[0] == ((21 + 11, 21, 36, 10),)
    odd = GroupTables(replace(problem, mini_batch=3)).cases[0]
    assert (odd.micro_batch, odd.groups[2].turns, odd.groups[2].rows[0]) == (0, 2, ((14 + 11, 14, 36, 5),))
    # A message and its gradient: of two samples, of one of them, of whole micro-batches; of an order of one.
    sizes = {key: group.buffers for key, group in found.items()}
    assert (sizes[1, 2, 1, 1], sizes[1, 2, 2, 1], sizes[1, 2, 2, 2]) == ((8,), (4,), (8,))
    assert {sizes[key] for key in found if not key[1]} == {(4,)}
    assert (1, 2, 2, 1) in found
    assert (2, 3, 1, 1) in found
    assert (2, 3, 2, 1) not in found


def test_devices_without_the_first_operator_wait_for_it_and_those_without_the_last_one_behind_it() -> None:
    problem = chain_problem([3, 5], [7, 2], cluster(2))
    waits = Division(GroupTables(problem), 0).waits
    assert waits.tolist() == [[0, 0, 0, 0], [0, 0, 3, 0], [0, 2, 3, 0]]


def test_an_order_has_its_waits_beside_its_work() -> None:
    """Two samples. The second device works 2 x 40 ns and waits 10 for a forward: 90, if each has one operator.

    That is beyond the way down and back, 60 ns. Weights keep the operators apart, and replicas from paying.
    """
    problem = chain_problem([10, 20], [10, 20], cluster(2, memory=3100), weights=[1000] * 2, mini_batch=2)
    division = Division(GroupTables(problem), 0)
    (order,) = (case for case in division._cases if case.copies == 1 and not case.pattern)
    assert not division._fits(order, 89)
    assert division._fits(order, 90)


def test_both_ends_of_a_fork_save_at_their_own_instants() -> None:
    """0 -> 1 and 0 -> 2: a device with both readers never has to hold both."""
    tensors = [(0, (1, 2), 0)]
    problem = dag_problem(
        [4, 4, 4], [4, 4, 4], tensors, cluster(2, memory=9), saved=[1, 8, 8], mode="async", pins=ONE
    )
    stages = (
        Stage(operators=("op0",), devices=(0,), micro_batch=1),
        Stage(operators=("op1",), devices=(1,), micro_batch=1),
        Stage(operators=("op2",), devices=(1,), micro_batch=1),
    )
    assert time_bound(problem).ns <= fastest(problem, [Plan(stages=stages, placement="listed")]) == 16


def test_problems_with_a_flush_or_many_operators_have_no_groups() -> None:
    tight = cluster(2, memory=40)
    sync = chain_problem([2] * 3, [4] * 3, tight, mode="sync", pins=ONE)
    assert "groups" not in time_bound(sync).parts
    many = chain_problem([2] * (MOST_OPERATORS + 1), [4] * (MOST_OPERATORS + 1), tight, pins=ONE)
    assert "groups" not in time_bound(many).parts


def test_a_constant_may_be_on_every_group() -> None:
    problem = chain_problem([0, 2, 2], [0, 4, 4], cluster(2), activations=[0, 9, 1, 0], pins=ONE)
    graph = problem.profile.graph
    first = replace(graph.operators[0], constant=True)
    constant = replace(graph, operators=(first, *graph.operators[1:]))
    problem = replace(problem, profile=replace(problem.profile, graph=constant))
    tables = GroupTables(problem)
    assert tables.operators == (1, 2)
    assert {group.buffers for case in tables.cases for group in case.groups} == {(0, 2), (0, 0)}
    assert time_bound(problem).ns == 6


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), st.booleans(), st.randoms(use_true_random=False))
def test_no_plan_without_a_flush_that_just_fits_is_below_the_bound(
    problem: Problem, overhead: bool, random: Random
) -> None:
    """Patterns and orders; replicas in turn that are more than there are micro-batches, too."""
    problem = replace(problem, regime=replace(problem.regime, mode="async"))
    if overhead:
        problem = with_overhead(problem)
    every = list(islice(plans(problem, recompute=problem.cluster.size < 3), 3000))
    for plan in random.sample(every, min(4, len(every))):
        for scheduler in ("1f1b*", "1f1b-rr", "periodic-bnb", "greedy"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            verdict = check_schedule(problem, plan, schedule)
            if verdict.status == "valid":
                fitting = with_memory(problem, plan, max(1, *verdict.peak_bytes.values()))
                seconds = metrics(fitting, plan, simulate(fitting, plan, schedule)).seconds
                bound = time_bound(fitting)
                assert bound.ns <= round(seconds * 1e9), (scheduler, plan, bound)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_time_that_is_claimed_is_the_first_that_is_not_ruled_out(devices: int) -> None:
    problem = chain_problem([3, 5, 4], [6, 5, 2], cluster(devices, memory=60), weights=[2, 3, 4], saved=[3, 1, 2])
    every_ns = every_stage_ns(problem)
    proof = groups_proof(problem, every_ns, 1)
    assert proof is not None
    assert groups_proof(problem, every_ns, proof.claimed_ns) is None
    again = groups_proof(problem, every_ns, proof.claimed_ns - 1)
    assert again is not None
    assert again.claimed_ns == proof.claimed_ns


@st.composite
def tight_graphs(draw: st.DrawFn) -> Problem:
    """Two to four operators on one to three devices, on which memory is short."""
    size = draw(st.integers(2, 4))
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), max_size=4)))
    work, held = (st.lists(st.integers(0, most), min_size=size, max_size=size) for most in (20, 9))
    return dag_problem(
        draw(work), draw(work), [(one, (other,), draw(st.integers(0, 4))) for one, other in edges],
        cluster(draw(st.integers(1, 3)), memory=draw(st.sampled_from([30, 45, 60, 90, 10**6]))),
        weights=draw(held), saved=draw(held), mini_batch=draw(st.sampled_from([1, 2, 4])),
        micro_batches=draw(st.sampled_from([(1,), (1, 2), (1, 2, 4)])), mode="async",
    )  # fmt: skip


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(tight_graphs())
def test_it_is_what_the_lemmas_say(problem: Problem) -> None:
    plain = PlainGroups(problem)
    proof = groups_proof(problem, 0, 1)
    if proof is None:
        assert plain.possible(1) or not plain.possible(900)
        return
    assert plain.possible(proof.claimed_ns)
    assert not plain.possible(proof.claimed_ns - 1)
