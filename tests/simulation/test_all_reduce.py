"""The all-reduce of replicas and of copies of the pipeline, and split backwards."""

import msgspec
import pytest

from pipebench.domain.plan import Plan, Stage
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import gpipe_schedule, lanes, one_f_one_b_schedule


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_ring_follows_the_last_backward(replicas: int) -> None:
    """2 (d - 1) / d of 80 bytes at 1 byte/ns; the samples are divided among the replicas."""
    problem = chain_problem([3], [5], cluster(replicas), weights=[80], mode="sync", mini_batch=8)
    plan = stages_plan([[0]], micro_batch=4, replicas=[replicas])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    compute = 2 * (4 // replicas) * 8
    assert trace.kinds == "FFBBR"
    assert trace.start_ns[-1] == compute
    assert trace.total_ns == compute + 160 * (replicas - 1) // replicas


def test_the_first_stage_reduces_last() -> None:
    """Both stages have a ring of 40 ns; that of stage 1 runs while stage 0 still works."""
    problem = chain_problem([3, 3], [5, 5], cluster(4), weights=[40, 40], mode="sync", mini_batch=8)
    plan = stages_plan([[0], [1]], micro_batch=2, replicas=[2, 2])
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    assert trace.total_ns == (4 + 1) * 8 + 40


def test_copies_share_the_mini_batch_and_reduce_over_all_of_them() -> None:
    """Two copies of a chain of two: four micro-batches each, a ring over two devices."""
    problem = chain_problem([3, 3], [5, 5], cluster(4), weights=[40, 0], mode="sync", mini_batch=8)
    plan = msgspec.structs.replace(stages_plan([[0], [1]]), copies=2)
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    assert trace.total_ns == (4 + 1) * 8 + 40
    assert trace.kinds.count("R") == 1


def test_async_spreads_the_ring_over_the_backwards() -> None:
    problem = chain_problem([3], [5], cluster(2), weights=[40], mode="async", mini_batch=8)
    plan = stages_plan([[0]], micro_batch=2, replicas=[2])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert "R" not in trace.kinds
    assert trace.total_ns == 4 * (3 + 5) + 40


def test_the_input_gradient_goes_upstream_before_the_weight_gradient_runs() -> None:
    problem = chain_problem([2, 2], [6, 6], cluster(2), mode="sync", mini_batch=2)
    (costs,) = problem.profile.costs
    replace = msgspec.structs.replace
    operators = tuple(replace(each, weight_gradient_s=(4e-9,)) for each in costs.operators)
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    problem = replace(problem, profile=profile)
    plan = stages_plan([[0], [1]])
    trace = simulate(problem, plan, lanes("F0 F1 I0 I1 W0 W1", "F0 I0 F1 I1 W0 W1"))
    ends = dict(zip(zip(trace.kinds, trace.stage, trace.micro_batch, strict=True), trace.end_ns, strict=True))
    # Stage 1: F 2-4, I 4-6, F 6-8, I 8-10; stage 0 takes the gradients at 6 and 10.
    assert [ends["I", 1, 0], ends["I", 1, 1], ends["W", 1, 1]] == [6, 10, 18]
    assert [ends["I", 0, 0], ends["I", 0, 1], ends["W", 0, 1]] == [8, 12, 20]


def test_recomputation_runs_the_forward_again() -> None:
    problem = chain_problem([3], [5], cluster(1), mode="sync", mini_batch=4)
    stage = Stage(operators=("op0",), devices=(0,), micro_batch=1, recompute="stage")
    plan = Plan(stages=(stage,))
    assert simulate(problem, plan, gpipe_schedule(problem, plan)).total_ns == 4 * (3 + 5 + 3)
