"""Orders: both topological; one keeps branches together, the other levels."""

import numpy as np
import pytest

from pipebench.domain.problem import Problem
from pipebench_pipedream.order import branch_order, level_order
from tests.builders import cluster, dag_problem
from tests.plugins.pipedream.brute_force import random_problem


def two_branches() -> Problem:
    """0 -> 1 -> 3 -> 5 and 0 -> 2 -> 4 -> 5, listed level by level."""
    tensors = [(0, (1, 2), 1), (1, (3,), 1), (2, (4,), 1), (3, (5,), 1), (4, (5,), 1)]
    return dag_problem([1] * 6, [1] * 6, tensors, cluster(2))


def test_branch_order_finishes_a_branch_and_level_order_alternates() -> None:
    graph = two_branches().profile.graph
    assert branch_order(graph) == (0, 1, 3, 2, 4, 5)
    assert level_order(graph) == (0, 1, 2, 3, 4, 5)


def test_several_inputs_are_taken_as_listed() -> None:
    tensors = [(0, (2,), 1), (1, (3,), 1), (2, (4,), 1), (3, (4,), 1)]
    graph = dag_problem([1] * 5, [1] * 5, tensors, cluster(2)).profile.graph
    assert branch_order(graph) == (0, 2, 1, 3, 4)
    assert level_order(graph) == (0, 1, 2, 3, 4)


def test_the_longest_path_gives_the_level() -> None:
    tensors = [(0, (1,), 1), (1, (2,), 1), (2, (4,), 1), (3, (4,), 1)]
    graph = dag_problem([1] * 5, [1] * 5, tensors, cluster(2)).profile.graph
    assert level_order(graph) == (0, 3, 1, 2, 4)


@pytest.mark.parametrize("seed", range(20))
def test_both_orders_are_topological(seed: int) -> None:
    graph = random_problem(seed, "sync", 2, 1).profile.graph
    count = len(graph.operators)
    shuffled = np.random.default_rng(seed).permutation(count).tolist()
    graph = type(graph)(
        name="shuffled",
        operators=tuple(graph.operators[i] for i in shuffled),
        tensors=graph.tensors,
        parameters=graph.parameters,
    )
    for order in (branch_order(graph), level_order(graph)):
        assert sorted(order) == list(range(count))
        place = {operator: at for at, operator in enumerate(order)}
        assert all(place[a] < place[b] for a, after in enumerate(graph.successors) for b in after)
