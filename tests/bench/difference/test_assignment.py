"""The heaviest matching against all permutations."""

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.difference.matching import heaviest_matching

weights_of_pairs = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 5)), st.integers(1, 20), max_size=36
)


def heaviest_by_trying(weights: dict[tuple[int, int], int]) -> int:
    """The best sum over all ways to give six lefts six rights, missing pairs counting nothing."""
    return max(sum(weights.get(pair, 0) for pair in enumerate(rights)) for rights in permutations(range(6)))


@settings(max_examples=150, deadline=None)
@given(weights_of_pairs)
def test_no_permutation_is_heavier(weights: dict[tuple[int, int], int]) -> None:
    matched = heaviest_matching(weights)
    assert all(pair in weights for pair in matched.items())
    assert len(set(matched.values())) == len(matched)
    assert sum(weights[pair] for pair in matched.items()) == heaviest_by_trying(weights)


def test_more_on_one_side_than_on_the_other() -> None:
    assert heaviest_matching({(0, 0): 1, (1, 0): 3, (2, 0): 2}) == {1: 0}
    assert heaviest_matching({(0, 0): 1, (0, 1): 3, (0, 2): 2}) == {0: 1}
    assert heaviest_matching({}) == {}


def test_greedy_would_lose() -> None:
    assert heaviest_matching({(0, 0): 10, (0, 1): 9, (1, 0): 9}) == {0: 1, 1: 0}


def test_two_hundred_stages_that_all_touch_their_neighbours_take_no_time() -> None:
    chain = {(i, j): 100 - abs(i - j) for i in range(200) for j in (i - 1, i, i + 1) if 0 <= j < 200}
    assert heaviest_matching(chain) == {i: i for i in range(200)}
