"""Graphs of hundreds of operators, series-parallel or not, are planned in seconds; odd ones at all."""

import time

import pytest

from pipebench.algorithms.series_parallel import decompose
from pipebench.algorithms.sp_tree import leaves
from pipebench.check import check_schedule
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.plugins.graphpipe.large_graphs import inception_v3, nasnet, problem_on, random_dag
from tests.plugins.running import context, scheduled

SECONDS = 20
"""Of CPU, compilation included, on a busy machine; warm it takes less than a third."""


def planned(problem: Problem, **options: object) -> PlanResult:
    result = plan(problem, context(GraphPipeOptions(**options)))  # type: ignore[arg-type]
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    return result


@pytest.mark.parametrize("devices", [8, 32])
@pytest.mark.parametrize("name", ["inception", "nasnet"])
def test_published_networks_are_planned_in_seconds(name: str, devices: int) -> None:
    problem = problem_on(inception_v3() if name == "inception" else nasnet(), devices)
    decomposition = decompose(problem.profile.graph.successors)
    assert sorted(leaves(decomposition.tree)) == list(range(len(problem.profile.graph.operators)))
    assert bool(decomposition.linearised) == (name == "nasnet")
    started = time.process_time()
    result = planned(problem, variant="paper")
    assert time.process_time() - started < SECONDS
    lines = [notice for notice in result.notices if "put in a line" in notice]
    assert len(lines) == len(decomposition.linearised)


@pytest.mark.parametrize("seed", range(12))
def test_no_graph_of_60_operators_crashes_it(seed: int) -> None:
    planned(problem_on(random_dag(seed), (2, 5, 8)[seed % 3], seed), targets=3)


def test_stages_of_a_linearised_region_wait_only_for_what_they_read() -> None:
    """Two chains with one edge between them: the plan has no precedence that the graph lacks."""
    problem = problem_on(nasnet(3), 8)
    made = planned(problem, variant="paper").plan
    assert made.order_edges == ()
