"""Memory in a steady state against looking at every time of a mini-batch."""

from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.steady_memory import CLOSE, Holder, lack_bytes, least_mini_batch_ns, ways_down_ns

HOLDERS = st.lists(
    st.builds(Holder, st.integers(0, 300), st.integers(1, 8), st.integers(0, 20), st.integers(0, 20)),
    min_size=1,
    max_size=4,
)


@given(HOLDERS, st.integers(0, 200), st.integers(1, 60))
def test_it_is_the_least_time_that_has_room(holders: list[Holder], room: int, least: int) -> None:
    def needs(x: int) -> int:
        held = [max(1, min(each.most, -(-each.way_ns // x))) for each in holders]
        return sum(k * each.each_bytes + each.while_live_bytes for k, each in zip(held, holders, strict=True))

    fitting = [x for x in range(least, max(least, 300) + 1) if needs(x) <= room]
    found = least_mini_batch_ns(holders, room, least)
    assert (found is None) == (lack_bytes(holders, room) > 0) == (not fitting)
    if found is not None:
        assert needs(found) <= room
        assert fitting[0] <= found <= fitting[0] + max(1, least // CLOSE)


def test_the_way_down_and_back_is_the_longest() -> None:
    after = [[(1, 5), (2, 1)], [(3, 0)], [(3, 0)], []]
    assert ways_down_ns(after, [10, 20, 30, 40]) == [81, 60, 70, 40]
