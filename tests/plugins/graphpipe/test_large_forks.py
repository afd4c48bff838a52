"""Forks of many branches: fewer owners are offered, which take fewer others along; the best of those is found."""

import random

import pytest

from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe import compiler
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import GraphPipeSearch
from pipebench_graphpipe.series_parallel import decompose
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.all_partitions import Space, cuts, smallest_bottleneck, work_of
from tests.plugins.graphpipe.instances import pinned, problem_on
from tests.plugins.graphpipe.test_optimum import bottleneck_ns

LEVELS = {"any": 2, "light": 1, "none": 0}
MEMORIES = (150, 220, 300, 10**6)
SEEDS = mostly_at_night([range(8, 13), range(20)], [range(8, 13)])
"""Forks that are tried: on two of the five, as of the twenty, a narrower offer costs something."""


def forked(seed: int) -> Problem:
    """A fork of three to five branches with operators on both ends, or a row of two forks."""
    rng = random.Random(seed)
    branches = rng.randint(3, 5)
    edges = [(0, branch) for branch in range(1, branches + 1)]
    edges += [(branch, branches + 1) for branch in range(1, branches + 1)]
    count = branches + 2
    if branches < 5 and rng.random() < 0.5:
        edges += [(count - 1, count), (count - 1, count + 1)]
        count += 2
    return pinned(problem_on(rng, count, edges, rng.choice((2, 3, 4)), rng.choice(MEMORIES)), micro_batch=2)


def space_of(problem: Problem, **offer: object) -> Space:
    return Space(work_of(problem), **offer)  # type: ignore[arg-type]


@pytest.mark.parametrize("along", mostly_at_night(LEVELS, ["light", "none"]))
@pytest.mark.parametrize("light", mostly_at_night([0.05, 0.2], [0.05]))
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_bottleneck_is_the_smallest_of_what_owners_are_offered(
    along: str, light: float, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "LEVELS", (LEVELS[along],))
    monkeypatch.setattr(compiler, "LIGHT", light)
    narrower = 0
    for seed in seeds:
        problem = forked(seed)
        tree = decompose(problem.profile.graph.successors).tree
        best = smallest_bottleneck(problem, cuts(tree, space_of(problem, along=along, light=light)), 2)
        assert bottleneck_ns(problem) == best, f"seed {seed}"
        narrower += best != smallest_bottleneck(problem, cuts(tree, space_of(problem)), 2)
    assert (narrower > 0) == (along != "any")


@pytest.mark.parametrize("owners", [2, 4])
@pytest.mark.parametrize("seeds", SEEDS)
def test_of_many_branches_the_heaviest_and_the_lightest_are_owners(
    owners: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "MOST_OWNERS", owners)
    narrower = 0
    for seed in seeds:
        problem = forked(seed)
        tree = decompose(problem.profile.graph.successors).tree
        best = smallest_bottleneck(problem, cuts(tree, space_of(problem, owners=owners)), 2)
        assert bottleneck_ns(problem) == best, f"seed {seed}"
        narrower += best != smallest_bottleneck(problem, cuts(tree, space_of(problem)), 2)
    assert narrower > 0 or owners == 4


def test_the_size_of_the_table_decides_what_owners_take_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five branches, of which the two lightest are under the share that is called light."""
    edges = [(0, branch) for branch in range(1, 6)] + [(branch, 6) for branch in range(1, 6)]
    problem = problem_on(random.Random(0), 7, edges, 4, 10**6)
    works = sorted(work_of(problem)[branch] for branch in range(1, 6))
    monkeypatch.setattr(compiler, "LIGHT", works[2] / sum(works))
    sizes = {}
    for along, level in LEVELS.items():
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "LEVELS", (level,))
            chain = searched(problem).chain
            sizes[along] = compiler._starts(chain) * chain.width
    assert sizes["any"] > sizes["light"] > sizes["none"]
    for along, taken in (("any", {0, 1, 2, 3, 4}), ("light", {0, 2, 4}), ("none", {0})):
        monkeypatch.setattr(compiler, "LARGEST_TABLE", sizes[along] / 2)
        tails = searched(problem).chain.forks[1].tails
        assert {tail.absorbed for tail in tails if tail.owner == 0} == taken


def searched(problem: Problem) -> GraphPipeSearch:
    return GraphPipeSearch(problem, GraphPipeOptions(), Context(options=GraphPipeOptions()))
