"""Convexity against its definition."""

from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.convexity import Convexity
from pipebench.algorithms.reachability import bit_set
from tests.algorithms.graphs import chain, dags


@given(dags(12), st.integers(0, 2**12 - 1))
def test_a_set_is_convex_when_no_path_leaves_and_returns(successors: list[list[int]], chosen: int) -> None:
    nodes = [node for node in range(len(successors)) if chosen >> node & 1]

    def returns(node: int, left: bool) -> bool:
        """Whether a path on from `node` comes back in after it was outside."""
        return any(
            (left and after in nodes) or returns(after, left or after not in nodes) for after in successors[node]
        )

    assert Convexity(successors).is_convex(nodes) == (not any(returns(node, False) for node in nodes))


def test_the_witness_is_what_lies_between() -> None:
    convexity = Convexity(chain(5))
    assert convexity.leaves_and_returns([0, 3]) == bit_set([1, 2])
    assert convexity.leaves_and_returns([1, 2, 3]) == 0
    assert convexity.is_convex([])
