"""Graph kernels that are written by hand for speed, against networkx."""

from collections.abc import Sequence

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.graph_orders import descendants, members, pieces, transitive_reduction
from pipebench.domain.errors import InvalidValue
from pipebench.domain.problem import Problem
from pipebench.domain.topology import topological_order
from pipebench_graphpipe.compiler import Signatures
from pipebench_graphpipe.series_parallel import ParallelNode, decompose, leaves, parts
from pipebench_pipedream.downsets import count_downsets
from tests.algorithms.graphs import dags
from tests.builders import cluster, dag_problem

N_SHAPE = nx.DiGraph([("a", "c"), ("b", "c"), ("b", "d")])


def digraph(successors: Sequence[Sequence[int]]) -> nx.DiGraph:
    return nx.DiGraph({node: list(after) for node, after in enumerate(successors)})


@given(dags(14))
def test_the_topological_order_is_the_smallest(successors: list[list[int]]) -> None:
    names = [f"op{node}" for node in range(len(successors))]
    assert topological_order(successors, names) == tuple(nx.lexicographical_topological_sort(digraph(successors)))


@given(st.integers(2, 12), st.data())
def test_a_cycle_is_told_by_name_exactly_where_there_is_one(size: int, data: st.DataObject) -> None:
    node = st.integers(0, size - 1)
    successors = [sorted(data.draw(st.sets(node, max_size=2))) for _ in range(size)]
    graph = digraph(successors)
    if nx.is_directed_acyclic_graph(graph):
        topological_order(successors, [str(node) for node in range(size)])
        return
    with pytest.raises(InvalidValue) as caught:
        topological_order(successors, [str(node) for node in range(size)])
    told = caught.value.message.removeprefix("cycle: ").split(" -> ")
    if not any(word.startswith("…") for word in told):
        cycle = [int(word) for word in told]
        assert cycle[0] == cycle[-1] == min(cycle)
        assert len(set(cycle)) == len(cycle) - 1
        assert nx.is_path(graph, cycle)


@given(dags(14))
def test_reachability(successors: list[list[int]]) -> None:
    closure = nx.transitive_closure_dag(digraph(successors))
    assert [set(members(after)) for after in descendants(successors)] == [set(closure[node]) for node in closure]
    reduced = nx.transitive_reduction(digraph(successors))
    assert transitive_reduction(successors) == [sorted(reduced[node]) for node in range(len(successors))]


@given(dags(10))
def test_downsets_are_as_many_as_antichains(successors: list[list[int]]) -> None:
    assert count_downsets(successors) == sum(1 for _ in nx.antichains(digraph(successors)))


@settings(deadline=None)
@given(dags(9))
def test_a_line_is_needed_exactly_where_the_order_has_an_n(successors: list[list[int]]) -> None:
    """Valdes, Tarjan, Lawler (1982): an order is series-parallel if and only if its closure has no induced N."""
    closure = nx.transitive_closure_dag(digraph(successors))
    has_n = nx.algorithms.isomorphism.DiGraphMatcher(closure, N_SHAPE).subgraph_is_isomorphic()
    assert bool(decompose(successors).linearised) == has_n


@settings(deadline=None)
@given(dags(10))
def test_series_parallel_is_treewidth_two_between_the_terminals(successors: list[list[int]]) -> None:
    """Duffin (1965): no K4 once the terminals are joined. Least degree first is exact up to treewidth two."""
    reduced = nx.transitive_reduction(digraph(successors))
    graph = nx.Graph([("source", "sink")])
    for node in reduced:
        graph.add_edge(("in", node), ("out", node))
        graph.add_edges_from((("out", node), ("in", after)) for after in reduced[node])
        if not reduced.in_degree(node):
            graph.add_edge("source", ("in", node))
        if not reduced.out_degree(node):
            graph.add_edge(("out", node), "sink")
    width, _ = nx.algorithms.approximation.treewidth_min_degree(graph)
    assert decompose(successors).series_parallel == (width <= 2)


@st.composite
def forks(draw: st.DrawFn) -> Problem:
    """An operator, three chains of two operators with few different costs, an operator."""
    few = st.integers(1, 2)
    edges = [(0, (1, 3, 5), 8), *((node, (node + 1,), draw(few)) for node in (1, 3, 5))]
    edges += [(node, (7,), 4) for node in (2, 4, 6)]
    inside = st.lists(few, min_size=6, max_size=6)
    costs = [[3, *draw(inside), 3] for _ in range(4)]
    return dag_problem(costs[0], costs[1], edges, cluster(4), weights=costs[2], saved=costs[3])


@settings(deadline=None)
@given(forks())
def test_equal_signatures_are_isomorphic_branches(problem: Problem) -> None:
    graph, costs = problem.profile.graph, problem.profile.costs[0].operators
    whole = graph.to_networkx()
    for name, fields in whole.nodes.items():
        each = costs[fields["position"]]
        sizes = [graph.parameter_bytes[parameter] for parameter in fields["parameters"]]
        whole.nodes[name]["cost"] = (each.forward_s, each.backward_s, each.saved_bytes_per_sample, sizes)
    (fork,) = [part for part in parts(decompose(graph.successors).tree) if isinstance(part, ParallelNode)]
    made = Signatures(graph, costs)
    branches = [
        (made.of(branch), whole.subgraph(graph.operators[operator].name for operator in leaves(branch)))
        for branch in fork.children
    ]
    for signature, one in branches:
        for other_signature, other in branches:
            alike = nx.is_isomorphic(
                one,
                other,
                node_match=lambda a, b: a["cost"] == b["cost"],
                edge_match=lambda a, b: sizes_of(a) == sizes_of(b),
            )
            assert (signature == other_signature) == alike


def sizes_of(edges: dict[str, dict[str, float]]) -> list[tuple[float, ...]]:
    """Bytes of parallel edges, whatever their tensors are called."""
    return sorted(tuple(edge.values()) for edge in edges.values())


@given(st.integers(0, 12), st.data())
def test_pieces_are_the_connected_components(count: int, data: st.DataObject) -> None:
    node = st.integers(0, max(0, count - 1))
    joined = data.draw(st.lists(st.lists(node, max_size=4), max_size=8)) if count else []
    graph = nx.Graph((group[0], other) for group in joined for other in group)
    graph.add_nodes_from(range(count))
    assert pieces(count, joined) == sorted(sorted(piece) for piece in nx.connected_components(graph))
