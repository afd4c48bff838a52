"""The bounds of contiguous plans against the simulation of the plans they come with, and of all others."""

from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous import StageRange, decide
from pipebench.algorithms.chains.contiguous_plan import contiguous_plan, contiguous_result, sweep, take_turns
from pipebench.algorithms.chains.one_f_one_b_star import one_f_one_b_star
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.algorithms.strategies import chains, dags
from tests.algorithms.test_contiguous import chain_of
from tests.builders import chain_problem, cluster, dag_problem
from tests.plugins.contiguous import several_sizes


def on_links(problem: Problem, mode: LinkMode, memory: int | None = None) -> Problem:
    machines = msgspec.structs.replace(problem.cluster, link_mode=mode)
    if memory is not None:
        kinds = tuple(msgspec.structs.replace(kind, memory_bytes=memory) for kind in machines.types)
        machines = msgspec.structs.replace(machines, types=kinds)
    return msgspec.structs.replace(problem, cluster=machines)


def planned(problem: Problem) -> PlanResult | None:
    model = CostModel(problem)
    try:
        found = sweep(model, "operators", lambda name, amount: None, lambda: False)
    except InfeasibleProblem:
        return None
    assert found is not None
    return contiguous_result(model, found)


def simulated_s(problem: Problem, result: PlanResult) -> float:
    assert result.schedule is not None
    return metrics(problem, result.plan, simulate(problem, result.plan, result.schedule)).seconds


def working(problem: Problem) -> Problem:
    """Every operator takes time: of tasks without a length at one instant it is open which comes first."""
    device = problem.profile.costs[0]
    longer = tuple(
        msgspec.structs.replace(c, forward_s=(c.forward_s[0] + 1e-9,), backward_s=(c.backward_s[0] + 1e-9,))
        for c in device.operators
    )
    costs = (msgspec.structs.replace(device, operators=longer),)
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, costs=costs))


def hold(problem: Problem) -> PlanResult | None:
    problem = working(problem)
    result = planned(problem)
    if result is None:
        return None
    simulated = simulated_s(problem, result)
    if problem.cluster.link_mode == "delay":
        assert (result.lower_bound_s, result.bound_scope, result.termination) == (None, "", "heuristic")
        return result
    assert result.lower_bound_s is not None
    assert result.claimed_s is not None
    assert result.lower_bound_s <= simulated * (1 + 1e-12)
    assert result.lower_bound_s <= result.claimed_s
    assert (result.termination == "optimal") == (result.lower_bound_s == result.claimed_s)
    return result


@settings(deadline=None, max_examples=150)
@given(chains(), st.sampled_from(["half", "full", "delay"]))
def test_no_chain_is_simulated_below_its_bound(problem: Problem, mode: LinkMode) -> None:
    result = hold(on_links(problem, mode))
    if mode == "half" and result is not None:
        assert result.termination == "optimal"


@settings(deadline=None, max_examples=150)
@given(dags(), st.sampled_from(["half", "full", "delay"]), st.integers(40, 400))
def test_no_graph_is_simulated_below_its_bound(problem: Problem, mode: LinkMode, memory: int) -> None:
    hold(on_links(problem, mode, memory))


def test_a_transfer_without_a_gradient_may_take_time_between_nodes_only() -> None:
    # 1 byte without a gradient: 0 ns inside a node of two devices, 5 ns between nodes.
    problem = dag_problem(
        [0] * 4, [0, 1, 0, 2], [(1, (2,), 1)], cluster(4), weights=[0, 0, 1, 3], saved=[0, 12, 3, 5], mode="async"
    )
    graph = problem.profile.graph
    tensors = tuple(msgspec.structs.replace(each, gradient_bytes_per_sample=0.0) for each in graph.tensors)
    profile = msgspec.structs.replace(problem.profile, graph=msgspec.structs.replace(graph, tensors=tensors))
    node = LinkLevel(name="node", group=2, bandwidth_bytes_s=2e9)
    between = LinkLevel(name="all", group=4, latency_s=3e-9, bandwidth_bytes_s=5e8)
    machines = msgspec.structs.replace(problem.cluster, levels=(node, between))
    problem = msgspec.structs.replace(problem, profile=profile, cluster=machines)
    assert not take_turns(CostModel(problem), linearise(profile.graph, "operators"), 1)
    for memory in range(20, 60):
        hold(on_links(problem, "half", memory))


@settings(deadline=None, max_examples=80)
@given(chains(most_layers=5, least_time=1))
def test_no_other_contiguous_plan_is_below_it_either(problem: Problem) -> None:
    problem = on_links(problem, "full")
    result = planned(problem)
    model, chain = CostModel(problem), chain_of(problem)
    for stages in range(1, min(problem.cluster.size, chain.length) + 1):
        for cuts in combinations(range(1, chain.length), stages - 1):
            plan = contiguous_plan(model, chain, (0, *cuts, chain.length))
            try:
                schedule = one_f_one_b_star(model, plan)
            except InfeasibleProblem:
                continue
            assert result is not None
            assert result.lower_bound_s is not None
            simulated = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
            assert result.lower_bound_s <= simulated * (1 + 1e-12)


@settings(deadline=None)
@given(chains(), st.integers(1, 100), st.integers(0, 30))
def test_both_ways_admits_whatever_1f1b_star_admits_and_more_time_helps(
    problem: Problem, at: int, longer: int
) -> None:
    chain, stages, memory = chain_of(problem), StageRange(1, problem.cluster.size), problem.cluster.memory_bytes

    def feasible(period: int, both_ways: bool) -> bool:
        return decide(chain.arrays, period, stages.least, stages.most, memory, both_ways)[0] > 0

    assert feasible(at, both_ways=True) or not feasible(at, both_ways=False)
    assert feasible(at + longer, both_ways=True) or not feasible(at, both_ways=True)


def test_where_nothing_takes_time_nothing_is_proven_to() -> None:
    result = planned(chain_problem([0], [0], cluster(1)))
    assert result is not None
    assert (result.lower_bound_s, simulated_s(chain_problem([0], [0], cluster(1)), result)) == (0.0, 0.0)


def test_full_links_run_below_what_half_links_prove() -> None:
    # Two stages of 10 ns, 5 ns there and 5 ns back; memory for two micro-batches on the first stage only.
    problem = chain_problem([5, 5], [5, 5], cluster(2, memory=40), activations=[0, 5, 0], saved=[15, 0])
    half, full = planned(problem), planned(on_links(problem, "full"))
    assert half is not None
    assert full is not None
    assert half.lower_bound_s == half.claimed_s == full.claimed_s
    assert full.lower_bound_s is not None
    assert half.claimed_s is not None
    assert full.lower_bound_s <= simulated_s(on_links(problem, "full"), full)
    assert full.lower_bound_s < half.claimed_s


@pytest.mark.parametrize("mode", ["half", "full"])
def test_a_search_cut_short_proves_nothing_on_full_links(mode: LinkMode) -> None:
    model = CostModel(on_links(several_sizes(3), mode))
    left = iter([False] * 3)
    found = sweep(model, "operators", lambda name, amount: None, lambda: next(left, True))
    assert found is not None
    assert not found.complete
    result = contiguous_result(model, found)
    assert result.termination == "limit"
    assert (result.lower_bound_s is None) == (mode == "full")
