"""madpipe's bound on links of every mode, against simulations of its own plans and of contiguous ones."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench_baselines.contiguous_exact import plan as contiguous_exact
from pipebench_baselines.plugin import ContiguousOptions
from pipebench_madpipe import periodic_bnb
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import BranchOptions, MadPipeOptions
from tests.algorithms.strategies import chains, dags
from tests.algorithms.test_contiguous_bound import on_links, simulated_s, working
from tests.builders import chain_problem, cluster
from tests.nightly import examples
from tests.plugins.madpipe.brute_force import allocations, chain_of, devices_of, on_devices

MODES = st.sampled_from(["half", "full", "delay"])


def planned(problem: Problem) -> PlanResult | None:
    try:
        return plan(problem, Context(options=MadPipeOptions()))
    except InfeasibleProblem:
        return None


def hold(problem: Problem) -> None:
    problem = working(problem)
    result = planned(problem)
    if result is None:
        return
    if problem.cluster.link_mode == "delay":
        assert (result.lower_bound_s, result.bound_scope, result.termination) == (None, "", "heuristic")
        return
    lower, claimed = result.lower_bound_s, result.claimed_s
    assert lower is not None
    assert claimed is not None
    assert lower <= claimed
    assert (result.termination == "optimal") == (lower == claimed)
    assert lower <= simulated_s(problem, result) * (1 + 1e-12)
    try:
        contiguous = contiguous_exact(problem, Context(options=ContiguousOptions()))
    except InfeasibleProblem:
        return
    assert lower <= simulated_s(problem, contiguous) * (1 + 1e-12)


@settings(deadline=None, max_examples=examples(100))
@given(chains(), MODES, st.booleans())
def test_no_chain_is_simulated_below_it(problem: Problem, mode: LinkMode, one_stage_each: bool) -> None:
    pins = Pins(virtual_stages=1) if one_stage_each else Pins()
    hold(msgspec.structs.replace(on_links(problem, mode), pins=pins))


@settings(deadline=None, max_examples=examples(100))
@given(dags(), MODES, st.integers(40, 400))
def test_no_graph_is_simulated_below_it(problem: Problem, mode: LinkMode, memory: int) -> None:
    hold(on_links(problem, mode, memory))


def shortest_schedule(problem: Problem, on: Plan) -> PeriodicSchedule | None:
    """With transfers in both directions at once where the links allow that."""
    try:
        return periodic_bnb.schedule(problem, on, Context(options=BranchOptions()))
    except InfeasibleProblem:
        return None


@settings(deadline=None, max_examples=examples(60))
@given(chains(most_layers=4, most_devices=3, least_time=1), st.sampled_from(["half", "full"]))
def test_no_plan_of_the_class_is_below_it(problem: Problem, mode: LinkMode) -> None:
    problem = on_links(problem, mode)
    result = planned(problem)
    for found in allocations(chain_of(problem).length, problem.cluster.size):
        on = on_devices(problem, found.bounds, devices_of(found.special))
        schedule = shortest_schedule(problem, on)
        if schedule is None:
            continue
        if result is None:  # links that carry both directions at once may allow more than was searched
            assert mode == "full"
            continue
        assert result.lower_bound_s is not None
        repeats = problem.mini_batch // on.stages[0].micro_batch
        assert result.lower_bound_s <= repeats * schedule.period_ns * 1e-9 * (1 + 1e-12)
        simulated = metrics(problem, on, simulate(problem, on, schedule)).seconds
        assert result.lower_bound_s <= simulated * (1 + 1e-12)


def test_full_links_run_below_what_half_links_prove() -> None:
    # Two stages of 10 ns, 5 ns there and 5 ns back; memory for two micro-batches on the first stage only.
    problem = chain_problem([5, 5], [5, 5], cluster(2, memory=40), activations=[0, 5, 0], saved=[15, 0])
    half, full = planned(problem), planned(on_links(problem, "full"))
    assert half is not None
    assert full is not None
    assert half.lower_bound_s == half.claimed_s == full.claimed_s
    assert full.lower_bound_s is not None
    assert half.claimed_s is not None
    assert full.lower_bound_s < half.claimed_s


def test_where_nothing_takes_time_nothing_is_proven_to() -> None:
    problem = chain_problem([0, 0], [0, 0], cluster(2))
    result = planned(problem)
    assert result is not None
    assert (result.lower_bound_s, result.termination) == (0.0, "optimal")
    assert simulated_s(problem, result) == 0.0
