"""Exact columns: any change from one night to the next is an event, whatever the machine; what ends one."""

import pytest

from pipebench.track.judgement.events import Changes, exact_changes
from pipebench.track.nights.exact import exact_columns
from pipebench.track.nights.night import Benchmark, Exact, SubjectNight
from tests.bench.standings.made_rows import row
from tests.track.made_nights import EXACT, FINGERPRINT, measured, night, stored, subject


def nights(*found: SubjectNight, machines: str = "aaaaaaaaaa") -> Changes:
    """One subject, a night each."""
    return exact_changes([stored(machines[i], night(i, each)) for i, each in enumerate(found)])


def values(*columns: dict[str, Exact]) -> Changes:
    return nights(*(measured(exact=each) for each in columns))


def test_one_part_in_a_million_is_an_event_in_the_first_night() -> None:
    before = EXACT["simulated_ns"]
    assert isinstance(before, int)
    event = values({}, {"simulated_ns": before + 452}).events[0]
    assert (event.outcome, event.state, event.fails) == ("worse", "open", True)
    assert [(each.name, each.before, each.after) for each in event.columns] == [
        ("simulated_ns", before, before + 452)
    ]
    assert (event.before, event.after, event.began) == ("r0", "r1", night(1).recorded_at)


def test_the_same_night_after_night_is_no_event() -> None:
    assert values({}, {}, {}) == Changes()


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ({"simulated_ns": 2}, {"simulated_ns": 1}, "better"),
        ({"status": "ok"}, {"status": "crashed", "simulated_ns": None}, "worse"),
        ({"status": "timeout", "simulated_ns": None}, {"status": "ok"}, "better"),
        ({"simulated_ns": 2, "memory_bytes": 1}, {"simulated_ns": 1, "memory_bytes": 2}, "better"),
        ({"memory_bytes": 1}, {"memory_bytes": 2}, "worse"),
        ({"work.states": 10}, {"work.states": 11}, "worse"),
        ({"work.states": 10}, {"work.states": 9}, "better"),
        ({"simulated_ns": 2, "work.states": 10}, {"simulated_ns": 1, "work.states": 11}, "worse"),
        ({"work.states": 10}, {"work.states": 10, "work.more": 5}, "changed"),
        ({"plan": "a"}, {"plan": "b"}, "changed"),
        ({"bound_ns": 1}, {"bound_ns": 2}, "changed"),
        ({"simulated_ns": None, "estimated_ns": 1}, {"simulated_ns": 5, "estimated_ns": 2}, "worse"),
    ],
)
def test_what_a_change_means(before: dict[str, Exact], after: dict[str, Exact], outcome: str) -> None:
    assert [event.outcome for event in values(before, after).events] == [outcome]


def test_a_worsening_stays_open_until_the_value_is_back() -> None:
    worse: dict[str, Exact] = {"simulated_ns": 500_000_000}
    assert [event.state for event in values({}, worse, worse, worse).events] == ["open"]
    back = values({}, worse, worse, {}).events
    assert [(event.outcome, event.state) for event in back] == [("worse", "over"), ("better", "told")]


def test_a_worsening_is_over_when_it_became_better_than_before() -> None:
    events = values({"work.states": 10}, {"work.states": 20}, {"work.states": 8}).events
    assert [event.state for event in events] == ["over", "told"]


def test_half_of_the_way_back_is_not_over() -> None:
    events = values({"work.states": 10}, {"work.states": 20}, {"work.states": 12}).events
    assert [event.state for event in events] == ["open", "told"]


def test_two_steps_for_the_worse_are_two_events() -> None:
    events = values({"work.states": 10}, {"work.states": 20}, {"work.states": 30}).events
    assert [event.state for event in events] == ["open", "open"]
    assert len({event.identity for event in events}) == 2


def test_a_new_fingerprint_starts_a_segment_and_says_what_moved() -> None:
    newer = measured(exact={"simulated_ns": 1}, fingerprint=FINGERPRINT | {"numpy": "3.0"})
    found = nights(measured(), newer, newer)
    assert found.events == []
    assert found.segments[0].differences == ("numpy 2.0 -> 3.0",)
    assert [each.name for each in found.segments[0].columns] == ["simulated_ns"]


def test_inside_a_new_segment_changes_are_events_again() -> None:
    newer = FINGERPRINT | {"numpy": "3.0"}
    found = nights(
        measured(),
        measured(exact={"work.states": 20}, fingerprint=newer),
        measured(exact={"work.states": 21}, fingerprint=newer),
    )
    assert [event.columns[0].before for event in found.events] == [20]


def test_machines_that_take_turns_with_other_packages_have_their_own_segments() -> None:
    other = FINGERPRINT | {"numpy": "3.0"}
    a, b = measured(), measured(fingerprint=other)
    worse = measured(exact={"work.states": 11})
    found = nights(a, b, a, b, worse, machines="ababa")
    assert len(found.segments) == 1
    assert [event.told for event in found.events] == [night(4).recorded_at]


def test_exact_columns_are_compared_across_machines() -> None:
    found = nights(measured(), measured(exact={"work.states": 11}), machines="ab")
    assert [event.machine[:-8] for event in found.events] == ["linux-x86-64-b-4cpu-"]


def test_a_new_problem_closes_what_was_open() -> None:
    found = nights(
        measured(), measured(exact={"work.states": 11}), measured(fingerprint=FINGERPRINT | {"problem": "q"})
    )
    assert [(event.state, event.reason) for event in found.events] == [
        ("over", "the problem is another one since")
    ]


def test_other_packages_do_not_close_what_was_open() -> None:
    newer = measured(exact={"work.states": 11}, fingerprint=FINGERPRINT | {"numpy": "3.0"})
    assert [event.state for event in nights(measured(), measured(exact={"work.states": 11}), newer).events] == [
        "open"
    ]


def test_a_column_that_differs_within_a_night_is_not_judged() -> None:
    found = nights(measured(), measured(exact={"work.states": 99}, unsteady=("work.states",)))
    assert found.events == []


def test_subjects_are_apart() -> None:
    both = [measured(), measured(subject=subject("other"), exact={"work.states": 99})]
    assert exact_changes([stored("a", night(i, *both)) for i in range(2)]) == Changes()


def test_plans_of_both_nights_are_named() -> None:
    assert values({"plan": "a"}, {"plan": "b"}).events[0].plans == ("a", "b")
    assert values({"plan": None}, {"plan": "b"}).events[0].plans is None


@pytest.mark.parametrize(
    ("counts", "states"),
    [((5, 5), []), ((5, 6), ["open"]), ((6, 5), ["told"]), ((5, 6, 5), ["over", "told"])],
)
def test_counters_of_benchmarks_are_exact(counts: tuple[int, ...], states: list[str]) -> None:
    made = [Benchmark(name="b", seconds={"median": 1.0 + i}, counters={"n": n}) for i, n in enumerate(counts)]
    found = exact_changes([stored("a", night(i, benchmarks=(each,))) for i, each in enumerate(made)])
    assert [event.state for event in found.events] == states


@pytest.mark.parametrize(
    ("before", "after", "events", "segments"),
    [
        ((5, "1"), (6, "1"), 1, 0),
        ((5, "1"), (6, "2"), 0, 1),
        ((5, "1"), (5, "2"), 0, 0),
        ((5, "1"), (None, "1"), 0, 0),
        ((5, "1"), (None, "2"), 0, 0),
        ((5, ""), (6, "2"), 1, 0),
    ],
)
def test_what_moves_with_versions_around_a_benchmark_is_no_event(
    before: tuple[int | None, str], after: tuple[int | None, str], events: int, segments: int
) -> None:
    """A count, None for no counter, and the version of numpy, empty where the file does not say."""
    made = [
        Benchmark(
            name="b",
            seconds={"median": 1.0},
            counters={} if count is None else {"n": count},
            fingerprint={"numpy": version} if version else {},
        )
        for count, version in (before, after)
    ]
    found = exact_changes([stored("a", night(i, benchmarks=(each,))) for i, each in enumerate(made)])
    assert (len(found.events), len(found.segments)) == (events, segments)


def test_columns_of_a_row_are_whole_nanoseconds_and_counters() -> None:
    columns = exact_columns(row("mine", "p", 0.452374773, counters={"states": 7}, plan_id="abc"))
    assert columns["simulated_ns"] == 452374773
    assert (columns["work.states"], columns["plan"], columns["status"]) == (7, "abc", "ok")


def test_the_reason_of_a_crash_is_no_column() -> None:
    assert exact_columns(row("mine", "p", reason="killed at 0x7f"))["reason"] == ""
    assert exact_columns(row("mine", "p", status="infeasible", reason="too small"))["reason"] == "too small"
