"""Orderings: dependent sets by their definition, the paper's figures of breadth-first, and its refusal."""

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given

from pipebench.domain.errors import UnsupportedProblem
from pipebench_pase.elimination import Costs
from pipebench_pase.ordering import Ordering, elimination_order
from tests.plugins.pase.problems import pase, problem
from tests.plugins.pase.random_costs import graphs
from tests.plugins.pase.reference import REFERENCE

ORDERINGS: tuple[Ordering, ...] = ("generate-seq", "breadth-first", "min-fill")


def dependent_sets(adjacency: Sequence[frozenset[int]], order: Sequence[int]) -> list[tuple[int, ...]]:
    """PaSE, section III-B: neighbours, later in the order, of what a vertex reaches through earlier vertices."""
    found = []
    for position, vertex in enumerate(order):
        earlier = set(order[: position + 1])
        connected, todo = {vertex}, [vertex]
        while todo:
            for near in adjacency[todo.pop()] & earlier - connected:
                connected.add(near)
                todo.append(near)
        around = set().union(*(adjacency[v] for v in connected))
        found.append(tuple(sorted(around - earlier)))
    return found


@given(graphs(most_vertices=9, most_configurations=1))
def test_dependent_sets_are_those_of_the_definition(costs: Costs) -> None:
    for rule in ORDERINGS:
        order = elimination_order(costs.adjacency, rule)
        assert sorted(order.order) == list(range(len(costs.vertices)))
        assert list(order.dependent) == dependent_sets(costs.adjacency, order.order)


@given(graphs(most_vertices=9, most_configurations=1))
def test_generate_seq_takes_the_fewest_dependents_first(costs: Costs) -> None:
    order = elimination_order(costs.adjacency, "generate-seq")
    for position, vertex in enumerate(order.order):
        before = list(order.order[:position])
        sizes = {v: len(dependent_sets(costs.adjacency, [*before, v])[-1]) for v in order.order[position:]}
        least = min(sizes.values())
        assert vertex == min(v for v, size in sizes.items() if size == least)


@pytest.mark.parametrize(("name", "devices"), [("inception_v3", 8), ("transformer", 4)])
def test_breadth_first_is_counted_and_refused_before_memory_is_used(name: str, devices: int) -> None:
    expected = REFERENCE[name, devices, 128]
    given = problem(name, devices)
    pase(given)  # caches of the graph are warm
    tracemalloc.start()
    with pytest.raises(UnsupportedProblem, match=f"dependent sets of up to {expected.breadth_first} operators"):
        pase(given, ordering="breadth-first")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_breadth_first_runs_where_it_fits() -> None:
    given = problem("alexnet", 8)
    assert pase(given, ordering="breadth-first").claimed_native == pase(given).claimed_native
    with pytest.raises(UnsupportedProblem, match="more than table_gb=1e-07"):
        pase(given, ordering="breadth-first", table_gb=1e-7)
