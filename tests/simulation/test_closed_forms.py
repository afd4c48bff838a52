"""Totals that are known without a simulator."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.simulation.schedules import gpipe_schedule, one_f_one_b_schedule

Y_JOIN = [(0, 1), (1, 2), (2, 4), (3, 4)]


def equal_chain(
    stages: int, mini_batch: int, forward: int, backward: int, transfer: int = 0
) -> tuple[Problem, Plan]:
    problem = chain_problem(
        [forward] * stages,
        [backward] * stages,
        cluster(stages, link_mode="delay"),
        activations=[0, *[transfer] * (stages - 1), 0],
        mode="sync",
        mini_batch=mini_batch,
    )
    return problem, stages_plan([[stage] for stage in range(stages)])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 20), st.integers(0, 50), st.integers(1, 50))
def test_equal_stages_take_m_plus_s_minus_1_rounds(stages: int, count: int, forward: int, backward: int) -> None:
    problem, plan = equal_chain(stages, count, forward, backward)
    for schedule in (gpipe_schedule(problem, plan), one_f_one_b_schedule(problem, plan)):
        assert simulate(problem, plan, schedule).total_ns == (count + stages - 1) * (forward + backward)


@pytest.mark.parametrize(("stages", "rounds"), [(4, 131), (8, 135)])
def test_published_rounds(stages: int, rounds: int) -> None:
    problem, plan = equal_chain(stages, 128, 1, 2)
    assert simulate(problem, plan, one_f_one_b_schedule(problem, plan)).total_ns == 3 * rounds


@pytest.mark.parametrize(
    ("in_flight", "rounds"),
    [((4, 3, 2, 2, 1), 19), ((4, 3, 2, 1, 1), 34), ((3, 3, 2, 2, 1), 32), ((0, 0, 0, 0, 0), 19)],
)
def test_y_join(in_flight: tuple[int, ...], rounds: int) -> None:
    problem = dag_problem([1] * 5, [2] * 5, [(a, (b,), 0) for a, b in Y_JOIN], cluster(5), mini_batch=16)
    plan = stages_plan([[stage] for stage in range(5)], in_flight=in_flight)
    assert simulate(problem, plan, one_f_one_b_schedule(problem, plan)).total_ns == 3 * rounds


@pytest.mark.parametrize(
    ("transfer", "k", "warmup", "total"),
    [
        (100, 1, "+1", 150_600),
        (100, 1, "+2", 131_600),
        (100, 2, "+1", 131_600),
        (300, 1, "+1", 189_800),
        (300, 1, "+2", 132_800),
        (300, 2, "+1", 132_800),
    ],
)
def test_what_hides_transfers(transfer: int, k: int, warmup: str, total: int) -> None:
    """Four stages of time 1000, 128 micro-batches: notes, section 4."""
    problem, plan = equal_chain(4, 128, 500, 500, transfer)
    stages = tuple(msgspec.structs.replace(stage, k=k) for stage in plan.stages)
    plan = msgspec.structs.replace(plan, stages=stages)
    schedule = one_f_one_b_schedule(problem, plan, warmup)
    assert simulate(problem, plan, schedule).total_ns == total


def test_a_join_of_mixed_micro_batches_waits_for_all_that_cover_its_samples() -> None:
    """Stage 0 works on single samples, stage 1 on four: its F starts when the fourth has arrived."""
    problem = chain_problem([3, 1], [5, 1], cluster(2, link_mode="delay"), mode="sync", mini_batch=4)
    plan = stages_plan([[0], [1]])
    stages = (plan.stages[0], msgspec.structs.replace(plan.stages[1], micro_batch=4))
    plan = msgspec.structs.replace(plan, stages=stages)
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert trace.start_ns[8:] == (4 * 3, 4 * 3 + 4)
    assert trace.total_ns == 4 * 3 + 4 + 4 + 4 * 5


def test_order_edges_hold_in_both_passes() -> None:
    """Two stages that exchange nothing: with an order edge they run like a chain."""
    problem = dag_problem([3, 3], [5, 5], [], cluster(2), mini_batch=4)
    free = stages_plan([[0], [1]])
    chained = stages_plan([[0], [1]], order_edges=[(0, 1)])
    assert simulate(problem, free, one_f_one_b_schedule(problem, free)).total_ns == 4 * 8
    assert simulate(problem, chained, one_f_one_b_schedule(problem, chained)).total_ns == (4 + 1) * 8
