"""What must hold on any problem."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.check import check_plan, check_schedule
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.algorithms.graphs import branches, dags
from tests.nightly import examples, mostly_at_night
from tests.plugins.graphpipe.all_partitions import depths
from tests.plugins.graphpipe.instances import (
    Edge,
    pinned,
    problem_on,
    random_series_parallel,
    with_devices,
    with_memory,
)
from tests.plugins.running import scheduled


def edges_of(successors: list[list[int]]) -> list[Edge]:
    return [(before, after) for before, reached in enumerate(successors) for after in reached]


def bottleneck(problem: Problem) -> float:
    try:
        result = plan(problem, Context(options=GraphPipeOptions(variant="paper", tolerance=0)))
    except InfeasibleProblem:
        return float("inf")
    assert result.claimed_native is not None
    return result.claimed_native


@settings(deadline=None, max_examples=examples(60))
@given(dags(60), st.integers(0, 10**6), st.sampled_from([1, 3, 8]), st.sampled_from([600, 1500, 10**6]))
def test_any_graph_gets_a_valid_plan_with_the_in_flight_of_its_place(
    successors: list[list[int]], seed: int, devices: int, memory: int
) -> None:
    problem = problem_on(random.Random(seed), len(successors), edges_of(successors), devices, memory)
    try:
        made = plan(problem, Context(options=GraphPipeOptions())).plan
    except InfeasibleProblem:
        assert memory < 10**6
        return
    assert check_plan(problem, made).status == "valid"
    deep = depths(problem, made)
    assert deep is not None
    size = made.stages[0].micro_batch
    assert [stage.in_flight for stage in made.stages] == [min(d * size, problem.mini_batch) for d in deep]
    verdict = check_schedule(problem, made, scheduled(problem, made))
    assert (verdict.status, verdict.witness) == ("valid", None)


@pytest.mark.parametrize("seed", mostly_at_night(range(8), range(3)))
def test_more_devices_and_more_memory_never_hurt_the_bottleneck(seed: int) -> None:
    rng = random.Random(seed)
    problem = pinned(problem_on(rng, 12, random_series_parallel(rng, 12), 4, 350), micro_batch=4)
    by_devices = [bottleneck(with_devices(problem, devices)) for devices in (1, 2, 3, 4, 6, 8)]
    by_memory = [bottleneck(with_memory(problem, memory)) for memory in (200, 300, 400, 600, 1000, 10**5)]
    for found in (by_devices, by_memory):
        assert found == sorted(found, reverse=True)
    assert by_memory[-1] < by_memory[0]


@pytest.mark.parametrize("lengths", [[3, 3], [2, 2, 2, 2], [4, 1, 4, 1, 1], [3, 3, 2, 2, 2]])
@pytest.mark.parametrize("memory", [250, 400, 10**6])
def test_solving_alike_branches_once_changes_nothing(lengths: list[int], memory: int) -> None:
    joined = edges_of(branches(lengths, 2))
    behind = sum(lengths) + 2
    starts = [sum(lengths[:at]) for at in range(len(lengths))]
    forked = [*joined, *((behind, start) for start in starts)]
    for edges in (joined, forked):
        operators = behind + (edges is forked)
        problem = problem_on(random.Random(len(lengths)), operators, edges, 8, memory, alike=True)
        outcomes: list[float | None] = []
        work: list[int] = []
        for memo in (True, False):
            called = Context(options=GraphPipeOptions(variant="paper", tolerance=0, memo=memo))
            try:
                outcomes.append(plan(problem, called).claimed_s)
            except InfeasibleProblem:
                outcomes.append(None)
            work.append(called.counters["stages_measured"])
        assert outcomes[0] == outcomes[1]
        assert work[0] < work[1]
