"""Downsets: published shapes, lists against counts, limits."""

import pytest
from hypothesis import given

from pipebench.domain.errors import UnsupportedProblem
from pipebench_pipedream.downsets import count_downsets, list_downsets
from tests.algorithms.graphs import branches, chain, dags, graph

SHAPES = {
    "sequential Transformer, 96 operators": (chain(96), 97),
    "MMT-2, 24 operators a branch and a concat": (branches([24, 24], 1), 626),
    "case study, 12 operators a branch and a concat": (branches([12, 12], 1), 170),
    "MMT-2 with residuals, 57 operators a branch": (branches([57, 57], 1), 3365),
    "MMT-4": (branches([24] * 4, 1), 390626),
    "MMT-4 by layers": (branches([8] * 4, 1), 6562),
    "CANDLE-4": (branches([4] * 4, 2), 627),
    "CANDLE-7": (branches([4] * 7, 2), 78127),
    "CANDLE-8": (branches([4] * 8, 2), 390627),
    "DLRM, 7 dense and 7 sparse branches, concat and 4 layers": (branches([4] * 7 + [1] * 7, 5), 10000005),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_of_known_models(shape: str) -> None:
    successors, count = SHAPES[shape]
    assert count_downsets(successors) == count


@given(dags(10))
def test_listed_downsets_are_all_of_them(successors: list[list[int]]) -> None:
    operators = len(successors)
    closed = [
        nodes
        for nodes in range(1 << operators)
        if all(nodes >> u & 1 or not nodes >> v & 1 for u in range(operators) for v in successors[u])
    ]
    listed = list_downsets(successors, 1 << operators)
    assert sorted(listed) == closed
    assert [nodes.bit_count() for nodes in listed] == sorted(nodes.bit_count() for nodes in listed)
    assert count_downsets(successors) == len(closed)


def test_lists_stop_at_the_limit() -> None:
    assert len(list_downsets(branches([24, 24], 1), 626)) == 626
    with pytest.raises(UnsupportedProblem, match="more than 625 downsets"):
        list_downsets(branches([24, 24], 1), 625)
    with pytest.raises(UnsupportedProblem, match="more than 20000"):
        list_downsets([[]] * 40, 20_000)


def test_counts_stop_at_the_limit() -> None:
    # Two layers joined at random: nothing to multiply, so counting is as much work as it gets.
    crossed = graph(40, [(i, 20 + (i * j) % 20) for i in range(20) for j in (1, 3, 7)])
    with pytest.raises(UnsupportedProblem, match="more than 10 parts"):
        count_downsets(crossed, limit=10)
    assert count_downsets([[]] * 40) == 2**40
