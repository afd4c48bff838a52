"""Layers and cuts against their definitions."""

from itertools import chain as joined

import msgspec
from hypothesis import given

from pipebench.algorithms.graph_orders import crosses_twice, linearise
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Problem
from tests.algorithms.strategies import dags
from tests.builders import chain_problem, cluster, dag_problem


def graph_of(operators: int, tensors: list[tuple[int, tuple[int, ...], int]]) -> OperatorGraph:
    zeros = [0] * operators
    return dag_problem(zeros, zeros, tensors, cluster(1)).profile.graph


def residual_blocks() -> OperatorGraph:
    """Two blocks a -> b -> c with a skip from a to c, joined by c's output: 0 1 2 | 3 4 5."""
    return graph_of(6, [(0, (1, 2), 4), (1, (2,), 4), (2, (3,), 4), (3, (4, 5), 4), (4, (5,), 4)])


def test_a_chain_stays_a_chain() -> None:
    graph = chain_problem([1] * 5, [1] * 5, cluster(2)).profile.graph
    layers = linearise(graph)
    assert layers.operators == ((0,), (1,), (2,), (3,), (4,))
    assert layers.crossing == ((0,), (1,), (2,), (3,))
    assert not layers.relay
    assert linearise(graph, "operators") == layers


def test_layers_end_where_one_tensor_is_left() -> None:
    # Behind operators 0 and 3 only the skip tensor itself is left: one tensor with two readers.
    layers = linearise(residual_blocks())
    assert layers.operators == ((0,), (1, 2), (3,), (4, 5))
    assert layers.crossing == ((0,), (2,), (3,))
    assert not layers.relay


def test_operators_cut_everywhere_and_tensors_cross_several_cuts() -> None:
    layers = linearise(residual_blocks(), "operators")
    assert len(layers) == 6
    assert layers.crossing == ((0,), (0, 1), (2,), (3,), (3, 4))
    assert layers.relay


def test_inputs_of_the_model_need_no_transfer() -> None:
    graph = residual_blocks()
    tensors = (*graph.tensors, msgspec.structs.replace(graph.tensors[0], name="ids", producer=None))
    operators = tuple(
        msgspec.structs.replace(op, inputs=(*op.inputs, "ids")) if position in (0, 5) else op
        for position, op in enumerate(graph.operators)
    )
    with_ids = msgspec.structs.replace(graph, tensors=tensors, operators=operators)
    assert linearise(with_ids) == linearise(graph)


def test_relay_is_for_plans_whose_cuts_share_a_tensor() -> None:
    layers = linearise(residual_blocks(), "operators")
    assert crosses_twice(layers, [0, 1])
    assert not crosses_twice(layers, [0, 2, 3])


@given(dags())
def test_cuts_by_definition(problem: Problem) -> None:
    graph = problem.profile.graph
    for cuts in ("layers", "operators"):
        layers = linearise(graph, cuts)
        assert tuple(joined.from_iterable(layers.operators)) == graph.topological
        inside = [set(joined.from_iterable(layers.operators[: cut + 1])) for cut in range(len(layers) - 1)]
        for before, crossing in zip(inside, layers.crossing, strict=True):
            assert set(crossing) == needed_behind(graph, before)
        prefixes = [set(graph.topological[:end]) for end in range(1, len(graph.operators))]
        most = 1 if cuts == "layers" else len(graph.tensors)
        assert inside == [before for before in prefixes if len(needed_behind(graph, before)) <= most]
        crossed = list(joined.from_iterable(layers.crossing))
        assert layers.relay == (len(crossed) != len(set(crossed)))


def needed_behind(graph: OperatorGraph, before: set[int]) -> set[int]:
    """The tensors made in `before` that an operator outside reads."""
    return {
        tensor
        for tensor, producer in enumerate(graph.producers)
        if producer in before and not before.issuperset(graph.consumers[tensor])
    }
