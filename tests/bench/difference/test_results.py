"""Two sets of rows: what is matched, what counts as better, and what never does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.difference.operands import ResultsSide
from pipebench.bench.difference.results import ResultsDifference, compare_results
from pipebench.domain.row import Row
from tests.bench.standings.made_rows import row


def difference(before: list[Row], after: list[Row]) -> ResultsDifference:
    return compare_results(ResultsSide("a", before), ResultsSide("b", after))


some_rows = st.lists(
    st.builds(
        lambda planner, problem, value, stages, repetition: row(
            planner, problem, value, stages=stages, repetition=repetition
        ),
        st.sampled_from("ab"),
        st.sampled_from("pq"),
        st.none() | st.sampled_from([1.0, 2.0]),
        st.sampled_from([1, 2]),
        st.integers(0, 1),
    ),
    max_size=6,
)


@given(some_rows)
def test_a_set_and_itself_have_no_differences(rows: list[Row]) -> None:
    found = difference(rows, rows[::-1])
    assert found.same or len({(r.planner, r.problem_id, r.scheduler, r.repetition) for r in rows}) < len(rows)
    assert difference(rows, rows).same


@given(some_rows, some_rows)
def test_turned_round_better_is_worse(before: list[Row], after: list[Row]) -> None:
    there, back = difference(before, after), difference(after, before)
    opposite = {"better": "worse", "worse": "better"}
    for one, other in ((there, back), (back, there)):
        assert len(one.rows) + len(one.only_before) == len(before if one is there else after)
        assert sorted(opposite.get(r.outcome, r.outcome) for r in one.rows) == sorted(
            r.outcome for r in other.rows
        )
        assert set(one.only_before) == set(other.only_after)


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        (row("a", "p", 2.0), row("a", "p", 1.0), "better"),
        (row("a", "p", 1.0), row("a", "p", 1.000000001), "worse"),
        (row("a", "p", 1.0), row("a", "p"), "worse"),
        (row("a", "p"), row("a", "p", 1.0), "better"),
        (row("a", "p"), row("a", "p", status="timeout"), "changed"),
        (row("a", "p", 1.0, memory_bytes=1), row("a", "p", 1.0, memory_bytes=2), "changed"),
        (row("a", "p", 1.0, counters={"states": 1}), row("a", "p", 1.0, counters={"states": 2}), "changed"),
        (row("a", "p", 1.0, search_cpu_s=1.0), row("a", "p", 1.0, search_cpu_s=9.0), "same"),
        (row("a", "p", 1.0, environment={"load": "1"}), row("a", "p", 1.0, environment={"load": "2"}), "same"),
        (
            row("a", "p", None, status="ok", scheduler="1f1b", estimated_s=2.0),
            row("a", "p", 9.0, estimated_s=2.0),
            "changed",
        ),
    ],
)
def test_outcomes(old: Row, new: Row, outcome: str) -> None:
    (change,) = difference([old], [new]).rows
    assert change.outcome == outcome


def test_rows_of_one_side_only_and_problems_that_changed_under_their_name() -> None:
    after = [row("a", "p2", 1.0, profile="p"), row("b", "q", 1.0)]
    found = difference([row("a", "p", 1.0)], after)
    assert [r.problem_id for r in found.only_before] == ["p"]
    assert [r.problem_id for r in found.only_after] == ["p2", "q"]
    assert any("changed" in notice for notice in found.notices)
    assert not found.same


def test_two_schedulers_of_a_planner_are_two_trials() -> None:
    before = [row("a", "p", 1.0, scheduler="gpipe"), row("a", "p", 2.0, scheduler="1f1b")]
    found = difference(before, [row("a", "p", 2.0, scheduler="1f1b")])
    assert [r.outcome for r in found.rows] == ["same"]
    assert [r.scheduler for r in found.only_before] == ["gpipe"]


def test_search_times_are_information_and_refused_between_machines() -> None:
    def rows(cpu: str, factor: float, **more: Any) -> list[Row]:
        known = {"environment": {"cpu": cpu}} | more
        return [row("a", p, 1.0, search_cpu_s=factor * s, **known) for p, s in (("p", 1.0), ("q", 3.0))]

    found = difference(rows("x", 1.0), rows("x", 2.0))
    assert found.same
    assert found.search_ratio == pytest.approx(2.0)
    assert found.search_count == 2
    for other in (rows("y", 2.0), rows("x", 2.0, parallel=True)):
        refused = difference(rows("x", 1.0), other)
        assert refused.same
        assert refused.search_refused
        assert refused.search_ratio is None
        assert all(r.search_ratio is None for r in refused.rows)
