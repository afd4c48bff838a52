"""Downset tables: all of them, sums and cuts against sets, refusal with the count."""

import numpy as np
import pytest
from hypothesis import given, settings

from pipebench.algorithms.downset_table import (
    boundary,
    contains,
    cut_by_both,
    cut_edges,
    downset_sums,
    downset_table,
    node_sets,
)
from pipebench.domain.errors import UnsupportedProblem
from pipebench_pipedream.downsets import count_downsets, list_downsets
from tests.algorithms.graphs import branches, dags


def as_integers(rows: np.ndarray) -> list[int]:
    return [sum(int(word) << 64 * i for i, word in enumerate(row)) for row in rows]


@settings(deadline=None)
@given(dags(9))
def test_the_table_is_the_list(successors: list[list[int]]) -> None:
    rows = downset_table(successors, 1 << 9)
    assert sorted(as_integers(rows)) == sorted(list_downsets(successors, 1 << 9))
    sizes = [value.bit_count() for value in as_integers(rows)]
    assert sizes == sorted(sizes)


def test_more_than_one_word() -> None:
    successors = branches([40, 40], 2)
    rows = downset_table(successors, 10_000)
    assert rows.shape == (count_downsets(successors), 2)
    assert sorted(as_integers(rows)) == sorted(list_downsets(successors, 10_000))


def test_two_to_the_31_downsets_are_refused_with_the_count_so_far() -> None:
    with pytest.raises(UnsupportedProblem, match=r"more than 40000 downsets \(40001 counted so far") as caught:
        downset_table([[] for _ in range(31)], 40_000, "cut one order")
    assert caught.value.hint == "cut one order"


@settings(deadline=None)
@given(dags(7))
def test_sums_of_what_lies_between(successors: list[list[int]]) -> None:
    nodes = len(successors)
    edges = [(a, b) for a, later in enumerate(successors) for b in later]
    edges += [tuple(range(i, min(i + 3, nodes))) for i in range(nodes - 1)]
    values = 1.0 + np.arange(len(edges))
    weight = 1.0 + np.arange(nodes)[None, :]
    rows = downset_table(successors, 1 << 7)
    members = node_sets(edges, nodes)
    cut = cut_edges(rows, members)
    cut_sums = downset_sums(cut, values[None, :])[0] if edges else np.zeros(len(rows))
    sums = downset_sums(rows, weight)[0]
    sets = as_integers(rows)
    for large, whole in enumerate(sets):
        assert sums[large] == sum(node + 1 for node in range(nodes) if whole >> node & 1)
        for small, part in enumerate(sets):
            assert contains(rows, large, small) == (part & ~whole == 0)
            if part & ~whole:
                continue
            between = {node for node in range(nodes) if (whole & ~part) >> node & 1}
            crossing = sum(
                value for edge, value in zip(edges, values, strict=True) if between & {*edge} and {*edge} - between
            )
            both = sum(
                value
                for edge, value in zip(edges, values, strict=True)
                if all(
                    0 < len({*edge} & {n for n in range(nodes) if s >> n & 1}) < len(edge) for s in (whole, part)
                )
            )
            assert boundary(rows, cut, members, values, cut_sums, large, small) == crossing
            assert cut_by_both(cut, values, large, small) == both
