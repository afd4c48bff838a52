"""The closed form against hand figures and against the simulator."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.costs.estimate import estimate
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.nightly import examples
from tests.simulation.schedules import one_f_one_b_schedule

sizes_of = st.sampled_from([1, 2, 4])


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], int, int]:
    """Forward times, transfer times, micro-batches, backward as a multiple of forward, mini-batch."""
    count = draw(st.integers(1, 6))
    forward = [draw(st.integers(1, 20)) for _ in range(count)]
    cuts = [draw(st.sampled_from([0, 1, 5, 20])) for _ in range(count - 1)]
    sizes = [draw(sizes_of) for _ in range(count)] if draw(st.booleans()) else [draw(sizes_of)] * count
    return forward, cuts, sizes, draw(st.integers(1, 3)), draw(st.sampled_from([4, 8, 32]))


@settings(max_examples=examples(200), deadline=None)
@given(chains())
def test_never_below_1f1b_on_chains_without_contention(
    chain: tuple[list[int], list[int], list[int], int, int],
) -> None:
    forward, cuts, sizes, multiple, mini_batch = chain
    count = len(forward)
    problem = chain_problem(
        forward,
        [multiple * f for f in forward],
        cluster(count, link_mode="delay"),
        activations=[0, *cuts, 0],
        mode="sync",
        mini_batch=mini_batch,
    )
    plan = stages_plan([[stage] for stage in range(count)])
    stages = tuple(msgspec.structs.replace(s, micro_batch=b) for s, b in zip(plan.stages, sizes, strict=True))
    plan = msgspec.structs.replace(plan, stages=stages)
    assert estimate(problem, plan) >= simulate(problem, plan, one_f_one_b_schedule(problem, plan)).total_ns


@pytest.mark.parametrize("count", [1, 5])
def test_exact_for_equal_stages_without_transfers(count: int) -> None:
    problem = chain_problem([3] * count, [6] * count, cluster(count), mode="sync", mini_batch=16)
    plan = stages_plan([[stage] for stage in range(count)], micro_batch=2)
    assert estimate(problem, plan) == (8 + count - 1) * 18


def test_sync_by_hand() -> None:
    """A diamond, two samples a micro-batch: stage times 3 (one sample on each replica), 20, 8 and 4 ns.

    There and back takes 4 ns, to stage 3 from stage 2 8 ns. Longest period 20 + 4, longest path over stage 1,
    a ring of 10 ns.
    """
    tensors = [(0, (1,), 1), (0, (2,), 1), (1, (3,), 1), (2, (3,), 2)]
    problem = dag_problem([1, 5, 2, 1], [2, 5, 2, 1], tensors, cluster(5), weights=[10, 0, 0, 0], mini_batch=8)
    plan = stages_plan([[0], [1], [2], [3]], micro_batch=2, replicas=[2, 1, 1, 1])
    assert estimate(problem, plan) == 3 * (20 + 4) + (3 + 4 + 20 + 4 + 4) + 10


def test_the_gradients_of_small_micro_batches_come_one_by_one() -> None:
    """Stage 0 works on 4 samples, stage 1 on 1: 4 bytes there, four gradients of 1 byte back.

    One period of stage 0 is left after the first: 16 + 8. Path: 16 + 8 + 4 x 3.
    """
    problem = chain_problem([1, 1], [3, 2], cluster(2), activations=[0, 1, 0], mode="sync", mini_batch=8)
    plan = stages_plan([[0], [1]])
    plan = Plan(stages=(msgspec.structs.replace(plan.stages[0], micro_batch=4), plan.stages[1]))
    assert estimate(problem, plan) == (16 + 8) + (16 + 8 + 4 * 3)


def test_order_edges_lengthen_the_path_only() -> None:
    problem = dag_problem([3, 3], [5, 5], [], cluster(2), mini_batch=4)
    assert estimate(problem, stages_plan([[0], [1]])) == 4 * 8
    assert estimate(problem, stages_plan([[0], [1]], order_edges=[(0, 1)])) == 5 * 8


def test_async_is_the_busiest_lane_or_link() -> None:
    forward, backward = [3, 4], [5, 6]
    slow = chain_problem(forward, backward, cluster(2), activations=[0, 7, 0], mini_batch=8)
    fast = chain_problem(forward, backward, cluster(2), activations=[0, 2, 0], mini_batch=8)
    delay = chain_problem(forward, backward, cluster(2, link_mode="delay"), activations=[0, 7, 0], mini_batch=8)
    full = chain_problem(forward, backward, cluster(2, link_mode="full"), activations=[0, 14, 0], mini_batch=8)
    plan = stages_plan([[0], [1]])
    assert estimate(slow, plan) == 8 * 14
    assert estimate(fast, plan) == estimate(delay, plan) == 8 * 10
    assert estimate(full, plan) == 8 * 14
    assert estimate(fast, msgspec.structs.replace(plan, copies=2)) == 4 * 10


def test_stages_on_one_device_add_up() -> None:
    problem = chain_problem([3, 4, 5], [5, 6, 7], cluster(2), mini_batch=8)
    plan = stages_plan([[0], [1], [2]])
    shared = (plan.stages[0], plan.stages[1], msgspec.structs.replace(plan.stages[2], devices=(0,)))
    assert estimate(problem, Plan(stages=shared, placement="listed")) == 8 * (8 + 12)


def test_all_reduces_of_stages_on_one_lane_add_up() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2), weights=[1000, 500], mode="sync", mini_batch=2)
    stages = (Stage(operators=(f"op{i}",), devices=(0, 1), data_parallel=2, micro_batch=2) for i in range(2))
    plan = Plan(placement="listed", stages=tuple(stages))
    lane = Lane(devices=(0, 1), stage=(0, 1, 1, 0, 0, 1), micro_batch=(0,) * 6, kinds="FFBBRR")
    assert simulate(problem, plan, FiniteSchedule(lanes=(lane,))).total_ns == 4 + 1000 + 500
    assert estimate(problem, plan) == 4 + 1000 + 500
