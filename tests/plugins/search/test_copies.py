"""Replicas of stages, and copies of the pipeline: the same work on the same devices, over other links."""

import pytest

from pipebench.algorithms.orders.greedy import GreedyOrder
from pipebench.algorithms.orders.tables import Tables
from pipebench.domain.cluster import Cluster
from pipebench.domain.problem import Problem
from pipebench_search.descent import LocalSearch
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import CachedCosts, Scorer
from tests.builders import chain_problem, cluster, nodes
from tests.plugins.search.test_search import context

WORK = [50_000, 30_000, 40_000, 60_000]


def chain(on: Cluster, bytes_: int = 400) -> Problem:
    """Of four operators with weights of 200 kB and their gradients each. bytes_: of what they send."""
    work = [2 * each for each in WORK]
    sent, weights, saved = [bytes_] * 5, [100_000] * 4, [10] * 4
    return chain_problem(
        WORK, work, on, activations=sent, weights=weights, saved=saved, mode="sync", mini_batch=32
    )


def halves(problem: Problem, size: int, micro_batch: int) -> Draft:
    way = Drafting(problem).ways[0]
    parts = (Part((0, 1), 0, way, micro_batch), Part((2, 3), 1, way, micro_batch))
    return Draft(parts, (size, size))


def greedy_ns(problem: Problem, draft: Draft) -> int:
    plan = Drafting(problem).plan_of(draft)
    assert plan is not None
    count = problem.mini_batch // draft.copies // draft.parts[0].micro_batch
    tables = Tables.of(CachedCosts(problem), plan, count, links=True)
    return GreedyOrder(tables, [count] * len(plan.stages), split=False).makespan_ns


@pytest.mark.parametrize("factor", [2, 4])
def test_where_all_links_are_alike_copies_take_what_replicas_take(factor: int) -> None:
    problem = chain(cluster(8, bandwidth=4e9))
    draft = halves(problem, 4, 8)
    made = draft.in_copies(factor)
    assert made is not None
    assert (made.devices, made.copies, made.sizes) == (8, factor, (4 // factor,) * 2)
    assert Drafting(problem).possible(made)
    assert greedy_ns(problem, made) == greedy_ns(problem, draft)


def test_groups_and_micro_batches_have_to_divide() -> None:
    problem = chain(cluster(8))
    assert halves(problem, 4, 8).in_copies(3) is None
    assert halves(problem, 4, 2).in_copies(4) is None
    assert halves(problem, 1, 8).in_copies(2) is None


def test_copies_are_looked_at_where_nodes_differ_from_the_network() -> None:
    for on, expected in ((cluster(8), []), (nodes(8, 2), [2, 4])):
        problem = chain(on)
        near = Neighbourhood(CachedCosts(problem), Drafting(problem))
        assert [made.copies for made in near.as_copies(halves(problem, 4, 8))] == expected


@pytest.mark.parametrize(
    ("bytes_", "copies"), [(20_000, {2, 4}), (20, {1})], ids=["large messages", "hardly any messages"]
)
def test_rows_of_even_stages_are_copies_where_these_are_faster(bytes_: int, copies: set[int]) -> None:
    """Messages of a copy go over the links of a node, and gradients over those between nodes."""
    problem = chain(nodes(8, 2, within=40e9, between=0.2e9, shared=0.2e9), bytes_)
    given = context()
    rows = LocalSearch(given, Scorer(problem, given), 1, SearchOptions())._starts.even_rows()
    assert len(rows) >= 4
    assert rows[0].copies in copies
    assert all(row.devices == 8 for row in rows)
