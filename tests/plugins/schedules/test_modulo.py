"""Patterns by modulo scheduling: valid on any placement and graph of stages, and as short as closed forms say."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import NoOptions
from pipebench.simulation.simulate import simulate
from pipebench_schedules.modulo import schedule
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.plugins.running import services


def pattern(problem: Problem, plan: Plan) -> PeriodicSchedule:
    """The schedule, which the check finds valid and the simulator no slower than it says."""
    made = schedule(problem, plan, Context(options=NoOptions()))
    assert check_schedule(problem, plan, made).status == "valid"
    period_ns = simulate(problem, plan, made).period_ns
    assert period_ns is not None
    assert period_ns <= made.period_ns
    return made


def placed(plan: Plan, devices: list[int]) -> Plan:
    """Stages on one device each, by number."""
    stages = tuple(replace(stage, devices=(at,)) for stage, at in zip(plan.stages, devices, strict=True))
    return replace(plan, stages=stages, placement=placement_kind_of([stage.devices for stage in stages]))


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_stages_apart_run_at_the_pace_of_the_slowest(stages: int) -> None:
    forward = [7, 3, 9, 4, 5][:stages]
    problem = chain_problem(forward, [2 * ns for ns in forward], cluster(stages), mode="async", mini_batch=4)
    made = pattern(problem, stages_plan([[k] for k in range(stages)]))
    assert made.period_ns == 3 * max(forward)


def test_a_link_that_both_directions_share_sets_the_pace() -> None:
    problem = chain_problem(
        [2, 2], [2, 2], cluster(2, link_mode="half"), activations=[0, 9, 0], mode="async", mini_batch=4
    )
    assert pattern(problem, stages_plan([[0], [1]])).period_ns == 18
    full = replace(problem, cluster=cluster(2, link_mode="full"))
    assert pattern(full, stages_plan([[0], [1]])).period_ns == 9


def test_memory_makes_it_slower_until_one_micro_batch_is_in_flight() -> None:
    """As 1F1B*, which is optimal for stages apart: Beaumont, Eyraud-Dubois and Shilova 2021."""
    periods, optima = [], []
    for held in (3, 2, 1):
        problem = chain_problem(
            [5] * 3, [5] * 3, cluster(3, memory=held), saved=[1] * 3, mode="async", mini_batch=4
        )
        plan = stages_plan([[0], [1], [2]])
        periods.append(pattern(problem, plan).period_ns)
        best = services().schedule("1f1b*", problem, plan)
        assert isinstance(best, PeriodicSchedule)
        optima.append(best.period_ns)
    assert periods == optima == [10, 20, 30]


def test_it_keeps_to_what_the_plan_declares_in_flight() -> None:
    problem = chain_problem([5] * 3, [5] * 3, cluster(3), mode="async", mini_batch=4)
    periods = [
        pattern(problem, stages_plan([[0], [1], [2]], in_flight=[number] * 3)).period_ns for number in (3, 2, 1)
    ]
    assert periods == [10, 20, 30]


def test_a_backward_of_no_time_stands_inside_no_other_task() -> None:
    """It is ready at 9 ns, 4 ns into the forward of the next micro-batch."""
    problem = chain_problem([5, 2], [0, 2], cluster(2), mode="async", mini_batch=4)
    made = pattern(problem, stages_plan([[0], [1]]))
    assert (made.period_ns, made.start_ns[2], made.shift[2]) == (5, 0, 2)


def test_a_task_of_no_time_keeps_others_from_its_place() -> None:
    problem = dag_problem([4, 0, 5], [0, 0, 0], [(0, (1,), 2)], cluster(2), mode="async", mini_batch=4)
    for homes in product((0, 1), repeat=3):
        pattern(problem, placed(stages_plan([[0], [1], [2]]), list(homes)))


@pytest.mark.parametrize("link_mode", ["half", "full", "delay"])
def test_two_tensors_between_the_same_stages_go_one_behind_the_other(link_mode: LinkMode) -> None:
    """So the check counts a transfer of a pattern, whatever the links."""
    on = cluster(2, link_mode=link_mode)
    problem = dag_problem([5, 5], [5, 5], [(0, (1,), 4), (0, (1,), 6)], on, mode="async", mini_batch=4)
    assert pattern(problem, stages_plan([[0], [1]])).transfer_kinds == "FB"


def test_nothing_is_sent_along_an_order_edge() -> None:
    problem = dag_problem([5, 5], [5, 5], [], cluster(2), mode="async", mini_batch=4)
    made = pattern(problem, stages_plan([[0], [1]], order_edges=[(0, 1)]))
    assert made.transfer_kinds == ""


def test_where_one_micro_batch_does_not_fit_there_is_none() -> None:
    problem = chain_problem([5] * 3, [5] * 3, cluster(3, memory=1), saved=[2] * 3, mode="async", mini_batch=4)
    with pytest.raises(InfeasibleProblem):
        pattern(problem, stages_plan([[0], [1], [2]]))


def test_it_is_for_async_without_an_overlap() -> None:
    plan = stages_plan([[0], [1]])
    problem = chain_problem([5] * 2, [5] * 2, cluster(2), mode="sync", mini_batch=4)
    with pytest.raises(UnsupportedProblem, match="never flushes"):
        pattern(problem, plan)
    overlapped = replace(chain_problem([5] * 2, [5] * 2, cluster(2), mode="async", mini_batch=4), overlap=0.5)
    with pytest.raises(UnsupportedProblem, match="overlap"):
        pattern(overlapped, plan)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_any_placement_of_any_graph_has_a_valid_pattern_where_branch_and_bound_has_one(seed: int) -> None:
    draw = random.Random(seed)
    operators = draw.randint(2, 6)
    edges = [(i, (draw.randint(i + 1, operators - 1),), draw.randint(0, 9)) for i in range(operators - 1)]
    modes: tuple[LinkMode, ...] = ("half", "full", "delay")
    problem = dag_problem(
        [draw.randint(1, 20) for _ in range(operators)],
        [draw.randint(1, 40) for _ in range(operators)],
        edges,
        cluster(operators, memory=draw.randint(20, 120), link_mode=draw.choice(modes)),
        weights=[draw.randint(1, 9) for _ in range(operators)],
        saved=[draw.randint(0, 9) for _ in range(operators)],
        mode="async",
        mini_batch=4,
    )
    sets = draw.randint(1, operators)
    plan = placed(stages_plan([[k] for k in range(operators)]), [draw.randrange(sets) for _ in range(operators)])
    try:
        shortest = services().schedule("periodic-bnb[nodes=2000]", problem, plan)
    except InfeasibleProblem:
        with pytest.raises(InfeasibleProblem):
            pattern(problem, plan)
        return
    assert isinstance(shortest, PeriodicSchedule)
    assert shortest.period_ns <= pattern(problem, plan).period_ns <= 2 * shortest.period_ns
