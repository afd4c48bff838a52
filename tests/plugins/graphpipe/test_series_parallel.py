"""Decomposition: known graphs, round trips, and what it promises on any graph."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.graph_orders import descendants, members, transitive_reduction
from pipebench.domain.errors import InvalidValue
from pipebench_graphpipe.series_parallel import LeafNode, Node, ParallelNode, SeriesNode, decompose, leaves, parts
from tests.algorithms.graphs import branches, chain, dags, edges_of, graph, ordered, sp_trees
from tests.nightly import examples

N = graph(4, [(0, 2), (0, 3), (1, 3)])
K22 = graph(4, [(0, 2), (0, 3), (1, 2), (1, 3)])
BRIDGE = graph(6, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (3, 5), (4, 5)])


def line(*operators: int) -> SeriesNode:
    return SeriesNode(tuple(map(LeafNode, operators)))


@pytest.mark.parametrize("successors", [N, K22, BRIDGE], ids=["N", "K22", "bridge"])
def test_graphs_that_are_not_series_parallel_are_recognised(successors: list[list[int]]) -> None:
    assert not decompose(successors).series_parallel


def test_only_the_offending_region_is_put_in_a_line() -> None:
    found = decompose(BRIDGE)
    assert [sorted(region) for region in found.linearised] == [[1, 2, 3, 4]]
    assert parts(found.tree)[0] == LeafNode(0)
    assert parts(found.tree)[-1] == LeafNode(5)
    assert len(parts(found.tree)) == 6
    # A fork beside the region stays a fork, and one inside stays together.
    beside = decompose(graph(8, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7)]))
    assert parts(beside.tree)[-1] == ParallelNode((LeafNode(6), LeafNode(7)))
    inside = decompose(
        graph(10, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (3, 6), (3, 7), (6, 8), (7, 8), (8, 5), (4, 5), (5, 9)])
    )
    assert ParallelNode((LeafNode(6), LeafNode(7))) in parts(inside.tree)
    assert len(inside.linearised) == 1

    # Inside one branch of a fork the region is that branch's; the fork stays.
    branch = decompose(
        graph(9, [(6, 0), (6, 7), (7, 8), *((b, a) for b, after in enumerate(BRIDGE) for a in after), (5, 8)])
    )
    assert [sorted(region) for region in branch.linearised] == [[1, 2, 3, 4]]
    fork = parts(branch.tree)[1]
    assert isinstance(fork, ParallelNode)
    assert LeafNode(7) in fork.children


def test_all_of_a_group_before_all_of_another_needs_no_line() -> None:
    found = decompose(K22)
    assert found.tree == SeriesNode(
        (ParallelNode((LeafNode(0), LeafNode(1))), ParallelNode((LeafNode(2), LeafNode(3))))
    )
    assert (found.linearised, found.joins) == ((), 1)


def test_a_residual_chain_is_a_chain() -> None:
    skips = [(i, i + 3) for i in range(0, 18, 2)] + [(0, 20), (4, 20)]
    found = decompose(graph(21, [(i, i + 1) for i in range(20)] + skips))
    assert found.tree == line(*range(21))
    assert found.series_parallel


def test_known_shapes() -> None:
    assert decompose([[]]).tree == LeafNode(0)
    assert decompose(chain(3)).tree == line(0, 1, 2)
    assert decompose([[], [], []]).tree == ParallelNode((LeafNode(0), LeafNode(1), LeafNode(2)))
    # Two parts without an edge between them, several sources and sinks.
    found = decompose(graph(5, [(0, 2), (1, 2), (3, 4)]))
    assert found.tree == ParallelNode(
        (SeriesNode((ParallelNode((LeafNode(0), LeafNode(1))), LeafNode(2))), line(3, 4))
    )
    assert decompose(branches([2, 2, 2], 2)).tree == SeriesNode(
        (ParallelNode((line(0, 1), line(2, 3), line(4, 5))), LeafNode(6), LeafNode(7))
    )


def test_a_cycle_is_refused() -> None:
    with pytest.raises(InvalidValue, match="cycle"):
        decompose([[1], [2], [0]])


@settings(max_examples=examples(100))
@given(sp_trees(), st.randoms(use_true_random=False))
def test_series_parallel_graphs_come_back_with_any_skips(tree: Node, rng: random.Random) -> None:
    operators = len(list(leaves(tree)))
    edges = edges_of(tree)[2]
    after = descendants(graph(operators, edges))
    skips = [(u, v) for u in range(operators) for v in members(after[u]) if rng.random() < 0.2]
    found = decompose(graph(operators, edges + skips))
    assert found.tree == ordered(tree)
    assert found.series_parallel


@settings(deadline=None)
@given(dags(60))
def test_any_graph_gives_every_operator_once_in_topological_order(successors: list[list[int]]) -> None:
    found = decompose(successors)
    order = list(leaves(found.tree))
    assert sorted(order) == list(range(len(successors)))
    place = {operator: at for at, operator in enumerate(order)}
    assert all(place[before] < place[after] for before in place for after in successors[before])


@settings(deadline=None)
@given(dags(40))
def test_the_tree_keeps_every_precedence_and_adds_only_those_it_reports(successors: list[list[int]]) -> None:
    found = decompose(successors)
    wanted = descendants(successors)
    given_by_tree = descendants(graph(len(successors), edges_of(found.tree)[2]))
    regions = [set(region) for region in found.linearised]
    for before, reached in enumerate(given_by_tree):
        assert not wanted[before] & ~reached
        # Regions may lie inside one another, so what one adds shows up between any operators of the outer one.
        for after in members(reached & ~wanted[before]):
            assert any({before, after} <= region for region in regions)
    if found.series_parallel:
        assert given_by_tree == wanted


@given(dags(30))
def test_the_transitive_reduction_is_the_smallest_graph_with_the_same_precedences(
    successors: list[list[int]],
) -> None:
    reduced = transitive_reduction(successors)
    assert descendants(reduced) == descendants(successors)
    for before, after in enumerate(reduced):
        for dropped in after:
            fewer = [[v for v in each if (u, v) != (before, dropped)] for u, each in enumerate(reduced)]
            assert descendants(fewer) != descendants(reduced)
