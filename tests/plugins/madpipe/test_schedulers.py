"""periodic-bnb and periodic-ilp: equal optima, schedules that the check accepts, 1F1B* where nothing is shared."""

import random

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.one_f_one_b_star import one_f_one_b_star
from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench.simulation.synthetic import synthetic
from pipebench_madpipe import periodic_bnb, periodic_ilp
from pipebench_madpipe.moves import allocation_pattern
from pipebench_madpipe.pattern import plan_pattern
from pipebench_madpipe.pattern_search import shortest_pattern
from pipebench_madpipe.periodic_ilp import solve_ilp
from pipebench_madpipe.plugin import BranchOptions, IlpOptions
from pipebench_madpipe.stage_table import run_table
from tests.algorithms.strategies import chains, partitions
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.nightly import mostly_at_night
from tests.plugins.madpipe.brute_force import allocations, chain_of, devices_of, on_devices, solved
from tests.plugins.madpipe.strategies import shared_plans
from tests.plugins.running import services

some = settings(max_examples=60, deadline=None)


def bnb(problem: Problem, plan: Plan, nodes: int = 20_000) -> PeriodicSchedule:
    return periodic_bnb.schedule(problem, plan, Context(options=BranchOptions(nodes=nodes)))


def ilp(problem: Problem, plan: Plan) -> PeriodicSchedule:
    return periodic_ilp.schedule(problem, plan, Context(options=IlpOptions()))


@some
@given(shared_plans())
def test_branch_and_bound_equals_the_ilp(case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    try:
        described = plan_pattern(CostModel(problem), plan)
    except InfeasibleProblem:
        with pytest.raises(InfeasibleProblem, match="in flight"):
            ilp(problem, plan)
        return
    found, answer = solved(problem, plan), solve_ilp(described.pattern, 60.0)
    if found is None:
        assert answer.status == "infeasible"
        return
    assert answer.status == "optimal"
    assert answer.period_ns == found.period
    # The bound holds within the solver's tolerance.
    assert answer.bound_ns == pytest.approx(found.period, rel=1e-5)
    assert answer.gap <= 1e-6


@pytest.mark.parametrize("seed", mostly_at_night((2, 16, 18, 21, 22, 30, 36, 46, 53, 54), (2,)))
def test_the_second_branch_counts(seed: int) -> None:
    """Six to nine stages on two or three devices with little memory: chosen because the shortest pattern lies
    behind a branch that is not the first. The integer program is the oracle.
    """
    draw = random.Random(seed)
    length, devices = draw.randint(6, 9), draw.choice((2, 3))
    forward, backward = ([draw.randint(1, 9) for _ in range(length)] for _ in range(2))
    placed = tuple(draw.randrange(devices) for _ in range(length))
    problem = chain_problem(
        forward,
        backward,
        cluster(devices, memory=draw.randint(40, 140), bandwidth=draw.choice([5e8, 1e9])),
        activations=[draw.randint(0, 9) for _ in range(length + 1)],
        weights=[draw.randint(0, 3) for _ in range(length)],
    )
    plan = on_devices(problem, tuple(range(length + 1)), placed)
    found = solved(problem, plan)
    answer = solve_ilp(plan_pattern(CostModel(problem), plan).pattern, 60.0)
    assert found is not None
    assert (answer.status, answer.period_ns) == ("optimal", found.period)


@some
@given(shared_plans(), st.integers(1, 20_000))
def test_schedules_are_valid_and_run_at_their_period(case: tuple[Problem, Plan], nodes: int) -> None:
    problem, plan = case
    try:
        schedule = bnb(problem, plan, nodes)
    except InfeasibleProblem:
        return
    verdict = check_schedule(problem, plan, schedule)
    assert verdict.status == "valid", verdict.witness
    assert simulate(problem, plan, schedule).period_ns <= schedule.period_ns


@some
@given(shared_plans(most_layers=5, least_time=1))
def test_from_cold_start_the_shortest_pattern_settles_to_its_period(case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    try:
        schedule = bnb(problem, plan)
    except InfeasibleProblem:
        return
    # In the order of the proven shortest pattern nothing can run faster, or a shorter pattern would exist,
    # unless micro-batches then pile up in memory, which the order alone does not prevent.
    period = simulate(problem, plan, schedule).period_ns
    assert period == schedule.period_ns or period < schedule.period_ns


@some
@given(st.data())
def test_stages_of_their_own_run_as_under_1f1b_star(data: st.DataObject) -> None:
    problem = data.draw(chains(most_layers=6, most_devices=6))
    length = len(problem.profile.graph.operators)
    bounds = data.draw(partitions(length, problem.cluster.size))
    plan = on_devices(problem, bounds, tuple(range(len(bounds) - 1)))
    try:
        expected = one_f_one_b_star(CostModel(problem), plan).period_ns
    except InfeasibleProblem:
        with pytest.raises(InfeasibleProblem):
            bnb(problem, plan)
        return
    assert bnb(problem, plan).period_ns == expected


@some
@given(st.data())
def test_the_pattern_of_an_allocation_is_that_of_its_plan(data: st.DataObject) -> None:
    problem = data.draw(chains(most_layers=5, most_devices=3))
    chain = chain_of(problem)
    found = data.draw(st.sampled_from(list(allocations(chain.length, problem.cluster.size))))
    fits, pattern = allocation_pattern(run_table(chain), *found.arrays, problem.cluster.memory_bytes)
    direct = solved(problem, on_devices(problem, found.bounds, devices_of(found.special)))
    if not fits:
        assert direct is None
        return
    period, _, _, _ = shortest_pattern(pattern, 1, int(pattern.duration.sum()) + 2, 200_000)
    assert (direct.period if direct else -1) == period


@some
@given(shared_plans(), st.integers(1, 30))
def test_more_memory_never_hurts(case: tuple[Problem, Plan], more: int) -> None:
    problem, plan = case
    try:
        before = bnb(problem, plan).period_ns
    except InfeasibleProblem:
        return
    richer = msgspec.structs.replace(
        problem,
        cluster=cluster(
            problem.cluster.size,
            problem.cluster.memory_bytes + more,
            problem.cluster.levels[0].bandwidth_bytes_s,
        ),
    )
    assert bnb(richer, plan).period_ns <= before


def test_branches_that_share_a_device() -> None:
    # op0 feeds op1 and op2, both feed op3; op1 and op2 share a device: 2 x (3 + 3) ns of work there.
    tensors = [(0, (1, 2), 1), (1, (3,), 1), (2, (3,), 1)]
    problem = dag_problem([2, 3, 3, 2], [2, 3, 3, 2], tensors, cluster(3), mode="async", mini_batch=1)
    plan = on_devices(problem, (0, 1, 2, 3, 4), (0, 1, 1, 2))
    for schedule in (bnb(problem, plan), ilp(problem, plan)):
        assert schedule.period_ns == 12
        assert check_schedule(problem, plan, schedule).status == "valid"


def test_in_flight_limits_a_stage() -> None:
    problem = chain_problem([5, 5], [5, 5], cluster(2))
    free, one = stages_plan([[0], [1]]), stages_plan([[0], [1]], in_flight=[1, 1])
    assert bnb(problem, free).period_ns == 10
    assert bnb(problem, one).period_ns == 20


def test_memory_without_end_limits_nothing() -> None:
    problem, plan = synthetic(4, 8, forward_s=1e-3, backward_s=2e-3, mode="async")
    assert bnb(problem, plan).period_ns == ilp(problem, plan).period_ns == 3_000_000


def test_workspace_counts_when_a_backward_runs() -> None:
    problem = chain_problem([5, 5, 5], [5, 5, 5], cluster(2, 40), activations=[1, 1, 1, 0])
    plan = on_devices(problem, (0, 1, 2, 3), (0, 1, 0))

    def with_workspace(size: int) -> Problem:
        costs = problem.profile.costs[0]
        operators = (msgspec.structs.replace(costs.operators[0], workspace_bytes=size), *costs.operators[1:])
        profile = msgspec.structs.replace(
            problem.profile, costs=(msgspec.structs.replace(costs, operators=operators),)
        )
        return msgspec.structs.replace(problem, profile=profile)

    for size in (0, 30, 33):
        assert check_schedule(with_workspace(size), plan, bnb(with_workspace(size), plan)).status == "valid"
    with pytest.raises(InfeasibleProblem, match="bytes more"):
        bnb(with_workspace(40), plan)


def test_what_they_refuse() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2), mode="sync")
    with pytest.raises(UnsupportedProblem, match="async"):
        bnb(problem, stages_plan([[0], [1]]))


@settings(max_examples=15, deadline=None)
@given(shared_plans(most_layers=4))
def test_found_by_name(case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    try:
        found = [services().schedule(name, problem, plan) for name in ("periodic-bnb", "periodic-ilp")]
    except InfeasibleProblem:
        assume(False)
        return
    assert all(isinstance(each, PeriodicSchedule) for each in found)
