"""Benchmarks without a reference, and in their first nights: told beyond twice; classes of machines apart."""

import pytest

from pipebench.track.judgement.benchmarks import benchmark_speeds, doubled_events
from pipebench.track.judgement.events import Event, exact_changes
from pipebench.track.judgement.speeds import NO_PAIR, time_events
from pipebench.track.nights.history import StoredNight
from pipebench.track.nights.night import Benchmark, Night, PairedRatios
from tests.track.made_nights import night, stored


def benchmark(median_s: float, ratios: tuple[float, ...] = (), **fields: object) -> Benchmark:
    seconds = {"min": 0.9 * median_s, "median": median_s, "iqr": 0.1 * median_s, "max": 3 * median_s}
    paired = PairedRatios(rounds={"numpy": ratios}, calibration="c") if ratios else None
    return Benchmark(name="b", seconds=seconds, paired=paired, **fields)  # type: ignore[arg-type]


def nights(*found: Benchmark, machines: str = "a" * 99) -> list[StoredNight]:
    return [stored(machines[i], night(i, benchmarks=(each,), measured=())) for i, each in enumerate(found)]


def told(*found: Benchmark, machines: str = "a" * 99) -> list[tuple[str, str, str]]:
    return [
        (event.outcome, event.state, event.after) for event in doubled_events(nights(*found, machines=machines))
    ]


def seconds(*medians: float) -> list[Benchmark]:
    return [benchmark(each) for each in medians]


def test_three_times_the_seconds_are_told_in_the_second_night() -> None:
    assert told(*seconds(1.0, 3.0)) == [("worse", "open", "r1")]


@pytest.mark.parametrize("medians", [(1.0, 1.9), (1.0, 2.1), (1.0, 1.4, 0.7, 1.8, 1.0)])
def test_what_may_be_the_machine_is_not_told(medians: tuple[float, ...]) -> None:
    """At 2.1 the fastest round is below twice."""
    assert told(*seconds(*medians)) == []


def test_one_night_is_one_event_and_the_old_level_ends_it() -> None:
    assert told(*seconds(1.0, 3.0, 3.1, 2.9)) == [("worse", "open", "r1")]
    assert told(*seconds(1.0, 3.0, 3.1, 1.1)) == [("worse", "over", "r1"), ("better", "told", "r3")]
    assert told(*seconds(1.0, 3.0, 9.0)) == [("worse", "open", "r1"), ("worse", "open", "r2")]


def test_seconds_of_another_class_of_machine_are_not_compared() -> None:
    assert told(*seconds(1.0, 3.0), machines="ab") == []
    assert told(*seconds(1.0, 3.0, 3.0, 9.0), machines="abba") == [("worse", "open", "r3")]


def test_ratios_of_a_new_class_are_compared_with_those_of_the_others() -> None:
    ratios = [benchmark(1.0, (2.0,)), benchmark(0.5, (6.6, 6.0)), benchmark(0.5, (6.0,))]
    assert told(*ratios, machines="abb") == [("worse", "open", "r1")]
    assert told(benchmark(1.0, (2.0,)), benchmark(9.0, (3.0,)), machines="ab") == []


def test_one_process_as_fast_as_ever_is_enough_to_keep_quiet() -> None:
    assert told(benchmark(1.0, (2.0,)), benchmark(1.0, (6.0, 3.9, 6.0))) == []


def test_from_thirty_nights_on_ratios_are_judged_by_the_rule_alone() -> None:
    ratios = [benchmark(1.0, (2.0 + 0.01 * (i % 3),)) for i in range(31)] + [benchmark(1.0, (6.0,))] * 3
    assert told(*ratios) == []
    events = time_events([kept.night for kept in nights(*ratios)], "a")
    assert [(event.outcome, event.subject, event.after) for event in events] == [("worse", "b", "r31")]


def test_a_night_too_busy_for_ratios_tells_nothing() -> None:
    nothing = PairedRatios(rounds={}, calibration="c", discarded=15)
    quick, busy = (Benchmark(name="b", seconds={"min": t, "median": t}, paired=nothing) for t in (1.0, 9.0))
    assert told(benchmark(1.0, (2.0,)), quick, busy, benchmark(1.0, (2.0,))) == []
    tonight = benchmark_speeds([kept.night for kept in nights(benchmark(1.0, (2.0,)), busy)])[0].speed
    assert tonight is not None
    assert (tonight.state, tonight.ratio) == (NO_PAIR, None)


def test_a_benchmark_that_always_waits_is_judged_by_its_seconds() -> None:
    waiting = [
        Benchmark(name="b", seconds={"min": t, "median": t}, paired=PairedRatios(rounds={}, calibration="c"))
        for t in (1.0, 1.1, 3.0)
    ]
    assert told(*waiting) == [("worse", "open", "r2")]


def test_other_versions_begin_a_segment() -> None:
    newer = benchmark(3.0, fingerprint={"numpy": "3"})
    assert told(benchmark(1.0), newer) == []
    assert told(benchmark(1.0), benchmark(3.0), newer) == [("worse", "over", "r1")]


def test_counters_that_move_with_other_versions_are_a_segment_and_no_event() -> None:
    old = benchmark(1.0, counters={"states": 7}, fingerprint={"numpy": "2"})
    new = benchmark(1.0, counters={"states": 9}, fingerprint={"numpy": "3"})
    changes = exact_changes(nights(old, new))
    assert changes.events == []
    assert [(each.subject, each.differences) for each in changes.segments] == [("b", ("numpy 2 -> 3",))]
    same = exact_changes(nights(old, benchmark(1.0, counters={"states": 9}, fingerprint={"numpy": "2"})))
    assert [(event.outcome, event.state) for event in same.events] == [("worse", "open")]


def test_where_each_stands_tonight() -> None:
    def speed(*found: Benchmark) -> tuple[tuple[float, ...], str | None]:
        last = benchmark_speeds([kept.night for kept in nights(*found)])[0]
        return last.seconds, last.speed.state if last.speed else None

    assert speed(*seconds(1.0, 1.5)) == ((1.0, 1.5), None)
    assert speed(benchmark(1.0, (2.0,)), benchmark(1.1, (2.1,))) == ((1.0, 1.1), "not enough history (1 of 30)")


def test_the_same_event_keeps_its_name() -> None:
    def identity(*medians: float) -> str:
        found: list[Event] = doubled_events(nights(*seconds(*medians)))
        return found[0].identity

    assert identity(1.0, 3.0) == identity(1.0, 3.0, 3.0, 3.1)
    made: Night = nights(*seconds(1.0))[0].night
    assert made.timed == made.benchmarks
