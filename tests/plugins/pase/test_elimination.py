"""Elimination finds the optimum: of small graphs by enumeration, in any order, however large the tables."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench_pase import elimination
from pipebench_pase.elimination import Costs, find_best
from pipebench_pase.memory_limit import find_best_within
from pipebench_pase.ordering import elimination_order, in_order
from tests.plugins.pase.problems import pase, problem
from tests.plugins.pase.random_costs import graphs, least

ORDERINGS = ("generate-seq", "breadth-first", "min-fill")


@given(graphs())
def test_the_least_of_all_strategies(costs: Costs) -> None:
    best = find_best(costs, elimination_order(costs.adjacency, "generate-seq"))
    assert best.cost == least(costs) == costs.of(best.strategy)


@given(graphs(most_vertices=8), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_optimum(costs: Costs, random: Random) -> None:
    order = list(range(len(costs.vertices)))
    random.shuffle(order)
    found = {find_best(costs, in_order(costs.adjacency, order)).cost}
    found |= {find_best(costs, elimination_order(costs.adjacency, rule)).cost for rule in ORDERINGS}
    assert len(found) == 1


@given(graphs())
def test_one_configuration_at_a_time_is_the_same(costs: Costs) -> None:
    order = elimination_order(costs.adjacency, "generate-seq")
    at_once = find_best(costs, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "AT_ONCE", 0)
        assert find_best(costs, order) == at_once


def test_equal_parts_are_eliminated_once() -> None:
    """Ten equal legs on one hub: one elimination stands for all, and the answer is that of ten."""
    hub, leg, joint = np.array([5.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.array([[9.0, 4.0, 1.0], [2.0, 8.0, 7.0]])
    costs = Costs([hub] + [leg] * 10, {(0, v): joint for v in range(1, 11)})
    best = find_best(costs, elimination_order(costs.adjacency, "generate-seq"))
    assert best.reused == 8  # of nine legs; the hub goes before the tenth, which has no fewer neighbours
    assert best.cost == min(5 + 10 * min(10, 6, 4), 3 + 10 * min(3, 10, 10))


@given(graphs(most_vertices=5, most_configurations=3), st.integers(0, 60), st.integers(0, 2**32))
def test_the_least_within_a_limit(costs: Costs, limit: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = [rng.integers(0, 20, len(each)) for each in costs.vertices]
    order = elimination_order(costs.adjacency, "generate-seq")
    found = find_best_within(costs, memory, limit, order, 100_000)
    assert found.proven
    assert found.cost == least(costs, memory, limit)
    if found.strategy is not None:
        assert costs.of(found.strategy) == found.cost
        assert sum(int(each[n]) for each, n in zip(memory, found.strategy, strict=True)) <= limit


@given(graphs(most_vertices=5, most_configurations=3), st.integers(0, 60), st.integers(0, 2**32))
def test_a_search_that_gives_up_has_a_true_bound(costs: Costs, limit: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = [rng.integers(0, 20, len(each)) for each in costs.vertices]
    order = elimination_order(costs.adjacency, "generate-seq")
    found = find_best_within(costs, memory, limit, order, 1)
    true = least(costs, memory, limit)
    assert found.bound <= true + 1e-9
    assert found.cost >= true


@pytest.mark.parametrize("name", ["inception_v3", "transformer"])
def test_generate_seq_and_min_fill_agree_on_real_graphs(name: str) -> None:
    given = problem(name, 8)
    assert pase(given, ordering="min-fill").claimed_native == pytest.approx(pase(given).claimed_native, rel=1e-12)


def test_one_table_read_from_both_sides_is_two() -> None:
    """Legs on either side of a hub share an array, but one owns its rows and the other its columns."""
    same = np.array([[8.0, 1.0], [6.0, 9.0]])
    chain = Costs([np.zeros(2)] * 3, {(0, 1): same, (1, 2): same})
    assert find_best(chain, in_order(chain.adjacency, [0, 2, 1])).cost == least(chain)
