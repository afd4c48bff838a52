"""Cuts into parts whose largest sum is least, against all cuts."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.chains.level_cuts import balance_permille, balanced_cuts
from pipebench.costs.model import CostModel
from tests.builders import chain_problem, cluster, stages_plan


@given(times=st.lists(st.integers(0, 20), min_size=1, max_size=8), parts=st.integers(1, 8))
def test_no_cut_has_a_smaller_largest_part(times: list[int], parts: int) -> None:
    parts = min(parts, len(times))
    cuts = balanced_cuts(times, parts)
    assert len(cuts) == parts + 1
    assert all(a < b for a, b in pairwise(cuts))

    def largest(bounds: tuple[int, ...]) -> int:
        return max(sum(times[a:b]) for a, b in pairwise(bounds))

    every = ((0, *inner, len(times)) for inner in combinations(range(1, len(times)), parts - 1))
    assert largest(cuts) == min(map(largest, every))


def test_balance_is_the_busiest_stage_over_the_mean() -> None:
    problem = chain_problem([1, 1, 2], [2, 2, 4], cluster(2), mode="sync")
    assert balance_permille(CostModel(problem), stages_plan([[0], [1, 2]])) == 1500
