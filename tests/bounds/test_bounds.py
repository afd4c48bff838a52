"""Bounds against every plan of tiny problems, and one instance on which each argument is exact."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.bounds import memory_bound, time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Pins, Problem, Regime
from tests.bounds.drawn_problems import problems, sharing, tied, with_alternatives
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems())
def test_no_plan_is_below_the_bounds(problem: Problem) -> None:
    model = CostModel(problem)
    every = list(plans(problem))
    try:
        time, memory = time_bound(problem), memory_bound(problem)
    except InfeasibleProblem:
        assert every == []
        return
    for plan in every:
        assert time.ns <= length_ns(model, plan), plan
        assert memory.value <= memory_bytes(model, plan), plan


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=2), st.lists(st.integers(0, 9), min_size=2, max_size=2))
def test_recomputation_does_not_go_below_the_bounds(forward: list[int], saved: list[int]) -> None:
    problem = chain_problem(
        forward, forward, cluster(2), activations=[0, 3, 0], saved=saved, mode="sync", mini_batch=2
    )
    model, time, memory = CostModel(problem), time_bound(problem), memory_bound(problem)
    for plan in plans(problem, recompute=True):
        assert time.ns <= length_ns(model, plan)
        assert memory.value <= memory_bytes(model, plan)


def best(problem: Problem) -> tuple[int, int]:
    """The least length and the least memory over all plans."""
    model = CostModel(problem)
    every = list(plans(problem))
    return min(length_ns(model, p) for p in every), min(memory_bytes(model, p) for p in every)


def test_work_binds_where_replicas_are_free() -> None:
    problem = chain_problem([3, 5], [4, 8], cluster(2), mode="sync", mini_batch=4)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns) == ("work", 4 * 20 // 2)
    assert best(problem)[0] == bound.ns
    assert bound.value == 40e-9


def test_one_operator_binds_where_its_all_reduce_costs_more_than_it_saves() -> None:
    problem = chain_problem([0, 9], [0, 9], cluster(2), weights=[0, 100], mode="async", mini_batch=2)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, bound.operator) == ("operator", 36, "op1")
    assert best(problem)[0] == 36
    # On a faster link two replicas are worth their all-reduce of 100 ns / 10: 18 + 10.
    fast = msgspec.structs.replace(problem, cluster=cluster(2, bandwidth=10e9))
    assert (time_bound(fast).kind, time_bound(fast).ns) == ("operator", 28)
    assert best(fast)[0] == 28


def test_the_path_binds_where_the_mini_batch_is_one_sample() -> None:
    problem = chain_problem([3, 5, 1], [4, 8, 1], cluster(3), mode="sync", mini_batch=1)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns) == ("path", 22)
    assert best(problem)[0] == 22
    assert "path" not in time_bound(msgspec.structs.replace(problem, regime=Regime(mode="async"))).parts


def test_the_path_counts_all_micro_batches_of_its_slowest_operator() -> None:
    """Stages of 1 and 10 that cannot be replicated: the second starts after one forward of the first."""
    problem = chain_problem([1, 10], [1, 10], cluster(2), weights=[1000, 1000], mode="sync", mini_batch=4)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, bound.operator) == ("path", 2 + 4 * 20, "op1")
    assert best(problem)[0] == 82


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_rounding_half_to_even_cannot_undercut_the_bound(mode: str) -> None:
    """At 0.5 ns a sample one sample rounds to 0 and two to 1: the work of 4 samples is 0."""
    problem = chain_problem([0], [0], cluster(1), mode="sync" if mode == "sync" else "async", mini_batch=4)
    costs = problem.profile.costs[0]
    half = msgspec.structs.replace(costs.operators[0], forward_s=(0.5e-9,), backward_s=(1.5e-9,))
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=(half,)),))
    problem = msgspec.structs.replace(problem, profile=profile)
    assert time_bound(problem).ns == best(problem)[0] == 8
    pinned = msgspec.structs.replace(problem, pins=Pins(micro_batch=2))
    assert time_bound(pinned).ns == best(pinned)[0] == 2 * (1 + 3)


def test_pins_tighten() -> None:
    free = chain_problem([2, 2], [2, 2], cluster(4), mode="sync", mini_batch=8)
    assert time_bound(free).ns == 8 * 8 // 4
    sizes = [
        (Pins(data_parallel=2, tensor_parallel=1, pipeline=1), 8 * 8 // 2),
        (Pins(data_parallel=1, tensor_parallel=1, pipeline=1), 8 * 8),
        (Pins(micro_batch=8, data_parallel=1), 2 * 32),
    ]
    for pins, expected in sizes:
        problem = msgspec.structs.replace(free, pins=pins)
        assert time_bound(problem).ns == expected, pins
    with pytest.raises(InfeasibleProblem, match=r"^--dp 5 = 5 devices, there are 4$"):
        time_bound(msgspec.structs.replace(free, pins=Pins(data_parallel=5)))
    in_turn = msgspec.structs.replace(free, pins=Pins(data_parallel=3, micro_batch=2))
    assert time_bound(in_turn).ns == 24 < best(in_turn)[0]  # one of the three runs two of four micro-batches
    for pins, said in (
        (Pins(tensor_parallel=5), "--tp 5 = 5"),
        (Pins(tensor_parallel=3, data_parallel=2), "--tp 3 x --dp 2 = 6"),
        (Pins(tensor_parallel=3, data_parallel=2, pipeline=2), "--tp 3 x --dp 2 x --pp 2 = 12"),
    ):
        with pytest.raises(InfeasibleProblem, match=f"^{said} devices, there are 4$"):
            time_bound(msgspec.structs.replace(free, pins=pins))


def test_each_memory_argument_binds_and_is_reached() -> None:
    even = chain_problem([1, 1], [1, 1], cluster(2), weights=[10, 10], saved=[0, 0], mode="sync")
    assert (memory_bound(even).kind, memory_bound(even).value) == ("weights", 20)
    assert best(even)[1] == 20
    saving = chain_problem([1, 1], [1, 1], cluster(2), weights=[10, 10], saved=[4, 4], mode="async")
    assert (memory_bound(saving).kind, memory_bound(saving).value) == ("sample", 34)
    assert best(saving)[1] == 34
    uneven = chain_problem([1, 1], [1, 1], cluster(2), weights=[1, 10], saved=[4, 4], mode="async")
    assert (memory_bound(uneven).kind, memory_bound(uneven).value) == ("operator", 34)
    assert best(uneven)[1] == 34
    # Two operators that nothing joins are never live together.
    apart = dag_problem([1, 1], [1, 1], [], cluster(1), saved=[4, 9])
    assert memory_bound(apart).parts["sample"] == 9


def test_replicas_inside_a_node_reduce_over_its_links() -> None:
    """100 bytes over two devices: 100 ns outside a node, 10 inside, so two replicas are worth it."""
    levels = (
        LinkLevel(name="node", group=2, bandwidth_bytes_s=10e9),
        LinkLevel(name="net", group=4, bandwidth_bytes_s=1e9),
    )
    on = msgspec.structs.replace(cluster(4), levels=levels)
    problem = chain_problem([0, 9], [0, 9], on, weights=[0, 100], mode="async", mini_batch=2)
    assert (time_bound(problem).kind, time_bound(problem).ns) == ("operator", 28)
    assert best(problem)[0] == 28


def test_copies_share_the_optimizer_state_and_the_bound_knows() -> None:
    """Two copies of one stage halve Adam's 20 bytes as two replicas do: 10 + 10 + 10."""
    regime = Regime(mode="sync", optimizer="adam", optimizer_sharding="zero1")
    free = chain_problem([1], [1], cluster(2), weights=[10], mode="sync", mini_batch=2, pins=Pins(micro_batch=1))
    problem = msgspec.structs.replace(free, regime=regime)
    assert memory_bound(problem).parts["operator"] == best(problem)[1] == 30


def test_rings_of_a_tensor_parallel_stage_share_the_way_out_of_a_node() -> None:
    """Two replicas of two ranks on two nodes: 100 bytes a ring, two rings at 1 byte/ns for both: 200 ns."""
    levels = (
        LinkLevel(name="node", group=2, bandwidth_bytes_s=100e9),
        LinkLevel(name="net", group=4, bandwidth_bytes_s=100e9, shared_bandwidth_bytes_s=1e9),
    )
    on = msgspec.structs.replace(cluster(4), levels=levels)
    pins = Pins(tensor_parallel=2, data_parallel=2)
    problem = chain_problem([9], [9], on, weights=[100], mode="sync", mini_batch=2, pins=pins)
    assert time_bound(problem).ns == best(problem)[0] == 18 + 200


def test_shared_parameters_are_held_once_where_their_readers_meet() -> None:
    problem = sharing(chain_problem([1, 1], [1, 1], cluster(1), weights=[10, 0], mode="sync"))
    assert memory_bound(problem).value == best(problem)[1] == 20


def test_operators_tied_under_alternatives_count_their_weights_once() -> None:
    """Both under the alternative: 3 bytes of weights, 3 of gradients, and of each a fixed byte and 2.5 saved."""
    problem = tied(chain_problem([1, 1], [1, 1], cluster(1), weights=[100, 0], saved=[9, 9], mode="sync"))
    problem = with_alternatives(problem, 1, 1, operators=2)
    assert memory_bound(problem).value == 2 * 3 + 2 + 5
    assert best(problem)[1] == 2 * 3 + 2 + 2 * 3


def test_pinned_samples_are_saved_once_among_pinned_replicas() -> None:
    pins = Pins(micro_batch=4, data_parallel=2)
    problem = chain_problem([1], [1], cluster(2), saved=[6], mode="sync", mini_batch=4, pins=pins)
    assert memory_bound(problem).value == best(problem)[1] == 2 * 6


def test_pinned_replicas_hold_a_copy_each() -> None:
    free = chain_problem([1, 1], [1, 1], cluster(2), weights=[10, 10], mode="sync", mini_batch=4)
    assert memory_bound(free).value == 20
    pinned = msgspec.structs.replace(free, pins=Pins(data_parallel=2))
    assert memory_bound(pinned).value == best(pinned)[1] == 40
    # Optimizer state that replicas share is held once: 2 x 20 of weights and gradients, 80 bytes of Adam's.
    shared = Regime(mode="sync", optimizer="adam", optimizer_sharding="zero1")
    problem = msgspec.structs.replace(pinned, regime=shared)
    assert memory_bound(problem).value == best(problem)[1] == 40 + 40 // 2
    # Where they share weights and gradients as well, one copy of all: 80 bytes on two devices. While a task runs,
    # also the weights of two operators and one gradient, which the bound leaves out.
    problem = msgspec.structs.replace(pinned, regime=msgspec.structs.replace(shared, optimizer_sharding="zero3"))
    assert memory_bound(problem).value == 40
    assert best(problem)[1] == 40 + 3 * 10


def test_unprofiled_mixtures_of_device_types_use_the_fastest() -> None:
    problem = chain_problem([6], [6], cluster(2), mode="sync", mini_batch=2)
    on = problem.cluster
    old = msgspec.structs.replace(on.types[0], name="old")
    mixed = msgspec.structs.replace(on, types=(*on.types, old), devices=("gpu", "old"))
    slow = msgspec.structs.replace(problem.profile.costs[0], device_type="old")
    slower = tuple(msgspec.structs.replace(c, forward_s=(9e-9,), backward_s=(9e-9,)) for c in slow.operators)
    profile = msgspec.structs.replace(
        problem.profile, costs=(*problem.profile.costs, msgspec.structs.replace(slow, operators=slower))
    )
    assert time_bound(msgspec.structs.replace(problem, profile=profile, cluster=mixed)).ns == 12
