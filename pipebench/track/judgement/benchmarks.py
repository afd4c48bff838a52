"""Benchmarks through the nights: where each stands, and a coarse rule for those without ratios.

A benchmark that runs beside a reference kernel has ratios; `track.rule` judges them as it judges search times,
once there are enough nights. Seconds depend on the machine and on what else it does: from one night to another
they may move by a fifth and more without a cause. What has no ratios, and ratios of the first nights, are told
only where even the fastest round (of ratios: the fastest process) takes more than twice what was usual. The
second night is enough for that.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_seconds
from pipebench.domain.value import Value, digest
from pipebench.track.judgement.events import (
    AS_BEFORE,
    NEW_SEGMENT,
    Event,
    Sighting,
    ended,
    event_between,
    identity,
)
from pipebench.track.judgement.speeds import FEWEST, Speed, segment_of, segments_of, speed_of
from pipebench.track.measurement.ratios import judged_ratios
from pipebench.track.nights.history import StoredNight
from pipebench.track.nights.night import Benchmark, Night
from pipebench.track.rule.rule import WINDOW

TWICE = 2.0
BACK = 1.5
"""Of what was usual: at most this, and what was told is over. Seconds beyond are noted for information."""


class BenchmarkSpeed(Value, frozen=True, kw_only=True):
    """One benchmark tonight. seconds: medians of this class of machine, oldest first, the last is tonight's.

    speed: by its ratios; None where it has none: it ran without a reference, or waits most of the time.
    """

    name: str
    seconds: tuple[float, ...]
    speed: Speed | None = None


def benchmark_speeds(nights: Sequence[Night]) -> list[BenchmarkSpeed]:
    """The benchmarks of the last night. nights: of one class, oldest first."""
    if not nights:
        return []
    seconds: dict[str, list[float]] = {}
    for night in nights:
        for each in night.benchmarks:
            seconds.setdefault(each.name, []).append(each.seconds["median"])
    segments = segments_of(nights)
    known = with_ratios(nights)
    return [
        BenchmarkSpeed(
            name=each.name,
            seconds=tuple(seconds[each.name]),
            speed=speed_of(each, segments) if each.name in known and each.paired else None,
        )
        for each in nights[-1].benchmarks
    ]


def with_ratios(nights: Sequence[Night]) -> set[str]:
    """The benchmarks that had a ratio in some night. A night without one was too busy to tell anything."""
    return {each.name for night in nights for each in night.benchmarks if judged_ratios(each.paired)}


def benchmark_notes(nights: Sequence[Night]) -> list[str]:
    """Seconds without a reference that lie over their median of the last nights by more than noise does."""
    found = []
    for each in benchmark_speeds(nights):
        before, median_s = each.seconds[-1 - WINDOW : -1], each.seconds[-1]
        if each.speed is None and len(before) >= FEWEST and median_s > BACK * (usual := statistics.median(before)):
            found.append(f"{each.name}: {readable_seconds(median_s)}, usually {readable_seconds(usual)}")
    return found


@dataclass(frozen=True, slots=True)
class _Timing(Sighting):
    """One benchmark in one night. usual: what it takes; least: by its fastest round or process.

    has_rule: these are ratios, which `track.rule` judges once there are enough nights.
    """

    usual: float
    least: float
    segment: str
    has_rule: bool


def doubled_events(nights: Sequence[StoredNight]) -> list[Event]:
    """Changes by more than twice that `track.rule` does not look at. nights: of all classes, oldest first.

    Seconds are compared on one class of machine. The ratios of a class that is new are compared with those of the
    others: a reference of the same kind of work leaves less than a factor of two between models of a CPU.
    """
    found_of: dict[str, list[_Timing]] = {}
    known = with_ratios([kept.night for kept in nights])
    for kept in nights:
        for benchmark in kept.night.benchmarks:
            timing = _timing(kept, benchmark)
            if timing.has_rule or benchmark.name not in known:
                found_of.setdefault(benchmark.name, []).append(timing)
    found: list[Event] = []
    for name, timings in found_of.items():
        has_rule = name in known
        for machine in dict.fromkeys(each.kept.machine for each in timings):
            series = [each for each in timings if each.kept.machine == machine]
            elsewhere = [each for each in timings if each.kept.machine != machine] if has_rule else []
            found += _events(name, series, elsewhere)
    return found


def _timing(kept: StoredNight, benchmark: Benchmark) -> _Timing:
    if ratios := judged_ratios(benchmark.paired):
        return _Timing(
            kept, benchmark, statistics.median(ratios), min(ratios), segment_of(benchmark), has_rule=True
        )
    seconds, segment = benchmark.seconds, digest(benchmark.fingerprint)
    return _Timing(kept, benchmark, seconds["median"], seconds["min"], segment, has_rule=False)


def _events(name: str, series: Sequence[_Timing], elsewhere: Sequence[_Timing]) -> Iterator[Event]:
    for segment in dict.fromkeys(each.segment for each in series):
        inside = [each for each in series if each.segment == segment]
        others = [each for each in elsewhere if each.segment == segment and each.night.at < inside[0].night.at]
        for event, usual in _changes(name, inside, others[-WINDOW:]):
            latest = inside[-1].usual if segment == series[-1].segment else None
            yield _with_state(event, usual, latest)


def _changes(name: str, inside: Sequence[_Timing], others: Sequence[_Timing]) -> Iterator[tuple[Event, float]]:
    """The changes of one segment on one class, each with what was usual before it."""
    level = 0
    for position, tonight in enumerate(inside):
        if tonight.has_rule and position - level >= WINDOW:
            return
        before = inside[max(level, position - WINDOW) : position] or (others if position == 0 else ())
        if not before:
            continue
        usual = statistics.median(each.usual for each in before)
        worse = tonight.least > TWICE * usual
        if worse or TWICE * tonight.usual < statistics.median(each.least for each in before):
            yield (
                event_between(
                    before[-1],
                    tonight,
                    identity("doubled", name, tonight.kept.machine.name, tonight.night.recorded_at),
                    kind="time",
                    outcome="worse" if worse else "better",
                    change=tonight.usual / usual - 1,
                ),
                usual,
            )
            level = position


def _with_state(event: Event, usual: float, latest: float | None) -> Event:
    """latest: what it takes in the last night of its class, None where that is another segment."""
    if latest is None:
        return ended(event, NEW_SEGMENT)
    return ended(event, AS_BEFORE) if latest <= BACK * usual else event
