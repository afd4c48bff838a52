"""The shape of a plan: branches against all antichains, and what makes two cuts the same."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.shape import cut_id, depth, width
from tests.builders import stages_plan
from tests.nightly import examples


@st.composite
def orders(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    stages = draw(st.integers(1, 7))
    pairs = list(combinations(range(stages), 2))
    return stages, sorted(draw(st.sets(st.sampled_from(pairs)))) if pairs else []


def reached(stages: int, edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Pairs of stages of which the first comes before the second."""
    found = set(edges)
    for middle in range(stages):
        found |= {(a, d) for a, b in list(found) for c, d in list(found) if b == c == middle}
    return found


@settings(max_examples=examples(150), deadline=None)
@given(orders())
def test_branches_are_the_largest_set_of_stages_that_do_not_wait_for_each_other(
    order: tuple[int, list[tuple[int, int]]],
) -> None:
    stages, edges = order
    before = reached(stages, edges)
    widest = max(
        count
        for count in range(1, stages + 1)
        for chosen in combinations(range(stages), count)
        if not any(pair in before for pair in combinations(chosen, 2))
    )
    assert width(stages, edges) == widest
    assert depth(stages, edges) <= stages


def test_two_cuts_are_the_same_whatever_order_devices_and_replicas() -> None:
    plan = stages_plan([[0, 1], [2]], replicas=[1, 2])
    assert cut_id(plan) == cut_id(stages_plan([[2], [1, 0]], micro_batch=4))
    assert cut_id(plan) != cut_id(stages_plan([[0], [1, 2]]))
