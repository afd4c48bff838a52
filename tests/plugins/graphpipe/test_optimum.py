"""The search against all plans of its space, and against all plans there are, on small problems."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.series_parallel import decompose
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.all_partitions import Cut, Space, cuts, smallest_bottleneck, work_of
from tests.plugins.graphpipe.instances import pinned, problem_on, random_series_parallel

MEMORIES = (100, 150, 220, 300, 10**6)


def bottleneck_ns(problem: Problem, tolerance: float = 0) -> int | None:
    """Of the plan at the pinned micro-batch; None when nothing fits."""
    try:
        result = plan(problem, Context(options=GraphPipeOptions(variant="paper", tolerance=tolerance)))
    except InfeasibleProblem:
        return None
    assert result.claimed_native is not None
    return round(result.claimed_native * result.plan.stages[0].micro_batch * 1e9)


def instance(seed: int, operators: tuple[int, int]) -> tuple[Problem, int]:
    rng = random.Random(seed)
    count, micro_batch = rng.randint(*operators), rng.choice((1, 2, 4, 8))
    edges = random_series_parallel(rng, count)
    problem = problem_on(rng, count, edges, 4, rng.choice(MEMORIES), alike=seed % 5 == 0)
    return pinned(problem, micro_batch=micro_batch), micro_batch


def all_in_space(problem: Problem) -> Iterator[Cut]:
    return cuts(decompose(problem.profile.graph.successors).tree, Space(work_of(problem)))


def set_partitions(operators: list[int]) -> Iterator[Cut]:
    if not operators:
        yield []
        return
    first, *others = operators
    for cut in set_partitions(others):
        yield [frozenset({first}), *cut]
        for at in range(len(cut)):
            yield [*cut[:at], cut[at] | {first}, *cut[at + 1 :]]


@pytest.mark.parametrize("block", mostly_at_night(range(10), range(2)))
def test_the_bottleneck_is_the_smallest_in_the_space(block: int) -> None:
    found = []
    for seed in range(25 * block, 25 * block + 25):
        problem, micro_batch = instance(seed, (4, 8))
        found.append(bottleneck_ns(problem))
        assert found[-1] == smallest_bottleneck(problem, all_in_space(problem), micro_batch), f"seed {seed}"
    assert None in found
    assert any(found)


@pytest.mark.parametrize("seeds", mostly_at_night([15, 60], [15]))
def test_no_plan_at_all_is_much_better(seeds: int) -> None:
    ratios = []
    for seed in range(1000, 1000 + seeds):
        problem, micro_batch = instance(seed, (5, 6))
        best = smallest_bottleneck(
            problem, set_partitions(list(range(len(problem.profile.graph.operators)))), micro_batch
        )
        own = bottleneck_ns(problem)
        if own is None or best is None:
            assert own is None or best is not None
            continue
        ratios.append(own / best)
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) < 1.05
    assert len(ratios) > seeds / 3


@pytest.mark.parametrize("seed", range(30))
def test_a_tolerance_costs_no_more_than_it_says(seed: int) -> None:
    problem, _ = instance(seed, (6, 8))
    exact, near = bottleneck_ns(problem), bottleneck_ns(problem, 0.05)
    assert (exact is None) == (near is None)
    if exact is not None and near is not None:
        assert exact <= near <= 1.05 * exact + 1


@pytest.mark.parametrize("seed", mostly_at_night(range(40), range(12)))
def test_on_a_chain_it_is_the_best_of_all_cuts(seed: int) -> None:
    rng = random.Random(seed)
    skips = [(0, 3), (1, 4)] if seed % 2 else []
    edges = [*pairwise(range(7)), *skips]
    micro_batch = rng.choice((1, 2, 4))
    problem = pinned(problem_on(rng, 7, edges, 4, rng.choice(MEMORIES)), micro_batch=micro_batch)
    contiguous = (
        [frozenset(range(a, b)) for a, b in pairwise((0, *(cut for cut in range(1, 7) if bits >> cut & 1), 7))]
        for bits in range(0, 128, 2)
    )
    assert bottleneck_ns(problem) == smallest_bottleneck(problem, contiguous, micro_batch)


@pytest.mark.parametrize("memory", [400, 700, 1000, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_on_a_long_chain_it_agrees_with_pipedream(seed: int, memory: int) -> None:
    rng = random.Random(seed)
    edges = [*pairwise(range(40)), *((i, i + 4) for i in range(0, 36, 5))]
    problem = pinned(problem_on(rng, 40, edges, 8, memory), micro_batch=rng.choice((2, 4)))
    try:
        other = pipedream(problem, Context(options=PipeDreamPlannerOptions(replicas="split"))).claimed_native
    except InfeasibleProblem:
        other = None
    assert bottleneck_ns(problem) == other
    assert (other is None) == (memory == 400)
