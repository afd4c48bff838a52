"""The maximum cycle ratio against an enumeration of all cycles."""

from fractions import Fraction

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.simulation.periodic import maximum_cycle_ratio

Arc = tuple[int, int, int, int]


def ratio(arcs: list[Arc]) -> Fraction:
    tail, head, weight, tokens = (np.array(column, np.int64) for column in zip(*arcs, strict=True))
    return maximum_cycle_ratio(tail, head, weight, tokens)


def by_enumeration(arcs: list[Arc]) -> Fraction:
    graph = nx.DiGraph((tail, head, {"w": weight, "t": tokens}) for tail, head, weight, tokens in arcs)
    best = Fraction(0)
    for cycle in nx.simple_cycles(graph):
        pairs = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        best = max(
            best, Fraction(sum(graph.edges[p]["w"] for p in pairs), sum(graph.edges[p]["t"] for p in pairs))
        )
    return best


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_equals_the_best_of_all_cycles(data: st.DataObject) -> None:
    """Tokens are at least 0 along the numbering and above 0 against it, then moved by potentials."""
    count = data.draw(st.integers(1, 6))
    potential = [data.draw(st.integers(0, 3)) for _ in range(count)]
    arcs = []
    for tail in range(count):
        for head in range(count):
            if data.draw(st.booleans()):
                tokens = data.draw(st.integers(0 if tail < head else 1, 3)) + potential[head] - potential[tail]
                arcs.append((tail, head, data.draw(st.integers(0, 50)), tokens))
    if arcs:
        assert ratio(arcs) == by_enumeration(arcs)


def test_by_hand() -> None:
    assert ratio([(0, 1, 4, 0), (1, 0, 5, 2)]) == Fraction(9, 2)
    assert ratio([(0, 1, 4, 0), (1, 0, 5, 2), (1, 1, 5, 1)]) == 5
    assert ratio([(0, 1, 4, 1)]) == 0
