"""Graphs of hundreds of operators, series-parallel or not, are planned in seconds; odd ones at all."""

from functools import cache

import pytest

from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.check import check_schedule
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.workload import WorkloadSpec
from pipebench.hooks.manager import Host
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.series_parallel import decompose, leaves
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.large_graphs import inception_v3, nasnet, problem_on, random_dag
from tests.plugins.running import context, scheduled

MOST_TRANSITIONS = 10**9
"""Of the dynamic programs: seconds of search, however busy the machine is. tests/benchmarks has the times."""


@cache
def builder() -> WorkloadBuilder:
    return WorkloadBuilder(Host())


def model(name: str, devices: int) -> Problem:
    """A model that ships, on Summit."""
    spec = WorkloadSpec(model=name, cluster="summit", devices=devices, mini_batch_per_device=16, optimizer="adam")
    return builder().workload(spec).problem("sync")


def planned(problem: Problem, **options: object) -> PlanResult:
    result = plan(problem, context(GraphPipeOptions(**options)))  # type: ignore[arg-type]
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    return result


@pytest.mark.parametrize("devices", mostly_at_night([8, 32], [8]))
@pytest.mark.parametrize("name", ["inception", "nasnet"])
def test_published_networks_are_planned_in_seconds(name: str, devices: int) -> None:
    problem = problem_on(inception_v3() if name == "inception" else nasnet(), devices)
    decomposition = decompose(problem.profile.graph.successors)
    assert sorted(leaves(decomposition.tree)) == list(range(len(problem.profile.graph.operators)))
    assert bool(decomposition.linearised) == (name == "nasnet")
    result = planned(problem, variant="paper")
    lines = [notice for notice in result.notices if "put in a line" in notice]
    assert len(lines) == len(decomposition.linearised)


@pytest.mark.parametrize(
    ("name", "devices", "variant"),
    [
        ("clip", 8, "paper"),
        ("clip", 8, "improved"),
        ("clip", 32, "paper"),
        pytest.param("clip", 32, "improved", marks=pytest.mark.nightly),
        ("inception_v3", 8, "paper"),
        pytest.param("inception_v3", 8, "improved", marks=pytest.mark.nightly),
        pytest.param("inception_v3", 32, "paper", marks=pytest.mark.nightly),
    ],
)
def test_models_that_ship_take_a_bounded_search(name: str, devices: int, variant: str) -> None:
    problem = model(name, devices)
    assert 150 < len(problem.profile.graph.operators) < 400
    options = GraphPipeOptions(variant=variant)  # type: ignore[arg-type]
    called = context(options)
    result = plan(problem, called)
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    assert called.counters["transitions"] < MOST_TRANSITIONS


@pytest.mark.parametrize("seed", mostly_at_night(range(12), (0, 1, 5)))
def test_no_graph_of_60_operators_crashes_it(seed: int) -> None:
    planned(problem_on(random_dag(seed), (2, 5, 8)[seed % 3], seed), targets=3)


def test_stages_of_a_linearised_region_wait_only_for_what_they_read() -> None:
    """Two chains with one edge between them: the plan has no precedence that the graph lacks."""
    problem = problem_on(nasnet(3), 8)
    made = planned(problem, variant="paper").plan
    assert made.order_edges == ()
