"""The scope of a planner's bound says what it leaves out: each time a plan of that kind is faster."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import cluster, dag_problem, stages_plan
from tests.plugins.running import services

ONE = Stage(operators=("op0",), devices=(0,), micro_batch=2)


def replicas() -> tuple[Problem, Plan]:
    problem = dag_problem([4], [4], [], cluster(2), mode="async", mini_batch=2)
    return problem, Plan(stages=(replace(ONE, devices=(0, 1), data_parallel=2),))


def recomputation() -> tuple[Problem, Plan]:
    """The larger micro-batch takes no longer, but what it saves fits where it is made again alone."""
    two = cluster(2, memory=130)
    problem = dag_problem(
        [4, 4], [4, 4], [(0, (1,), 1)], two, saved=[50, 10], mode="async", mini_batch=2, micro_batches=(1, 2)
    )
    plan = stages_plan([[0], [1]], micro_batch=2)
    return problem, replace(plan, stages=(replace(plan.stages[0], recompute="stage"), plan.stages[1]))


def another_way() -> tuple[Problem, Plan]:
    problem = dag_problem([4], [4], [], cluster(1), mode="async", mini_batch=2, micro_batches=(1, 2))
    way = Alternative(
        id="quick", tensor_parallel=1, forward_s=(1e-9,) * 2, backward_s=(1e-9,) * 2, parameter_bytes=0,
        saved_bytes_per_sample=0.0,
    )  # fmt: skip
    (costs,) = problem.profile.costs
    offered = (replace(costs.operators[0], alternatives=(way,)),)
    profile = replace(problem.profile, costs=(replace(costs, operators=offered),))
    return replace(problem, profile=profile), Plan(stages=(replace(ONE, choice=("quick",)),))


def another_size() -> tuple[Problem, Plan]:
    """The line through 1 and 2 samples goes on to 4."""
    problem = dag_problem([4], [4], [], cluster(1), mode="async", mini_batch=4, micro_batches=(1, 2))
    return problem, Plan(stages=(replace(ONE, micro_batch=4),))


def direct_messages() -> tuple[Problem, Plan]:
    """A long tensor skips a stage."""
    tensors = [(0, (2,), 9), (0, (1,), 1), (1, (2,), 1)]
    problem = dag_problem([4] * 3, [4] * 3, tensors, cluster(3), mode="async", mini_batch=2)
    return problem, stages_plan([[0], [1], [2]])


@pytest.mark.parametrize("planner", ["contiguous-exact", "madpipe"])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (replicas, "one device a stage"),
        (recomputation, "nothing recomputed"),
        (another_way, "no alternatives"),
        (another_size, "profiled micro-batch sizes"),
        (direct_messages, "tensors passed on from stage to stage"),
    ],
)
def test_what_is_faster_is_not_of_the_scope(
    made: Callable[[], tuple[Problem, Plan]], said: str, planner: str
) -> None:
    problem, plan = made()
    schedule = services().schedule("modulo", problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    result = services().plan(planner, problem)
    taken_s = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
    assert result.lower_bound_s is not None
    assert taken_s < result.lower_bound_s
    assert said in result.bound_scope.split(", ")


@pytest.mark.parametrize("planner", ["contiguous-exact", "madpipe"])
def test_what_a_pin_or_the_profile_rules_out_is_not_said(planner: str) -> None:
    problem = dag_problem([4, 4], [4, 4], [(0, (1,), 1)], cluster(2), mode="async", pins=Pins(recompute="none"))
    scope = services().plan(planner, problem).bound_scope.split(", ")
    assert "one device a stage" in scope
    assert not {"nothing recomputed", "profiled micro-batch sizes", "no alternatives"} & set(scope)
