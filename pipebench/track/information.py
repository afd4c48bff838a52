"""Wall time and memory: noted when they are far from what they were; nothing fails by them."""

import statistics
from collections.abc import Sequence

from pipebench.domain.units import readable_bytes, readable_seconds
from pipebench.domain.value import Value
from pipebench.track.night import Night
from pipebench.track.rule import WINDOW

FEWEST = 5
"""Earlier nights without which nothing is noted."""
FAR = {"search_wall_s": 1.5, "search_peak_bytes": 1.1}


class BenchmarkSeries(Value, frozen=True, kw_only=True):
    """Median seconds of an imported benchmark, oldest first; the last is tonight's."""

    name: str
    series: tuple[float, ...]


def benchmark_series(nights: Sequence[Night]) -> list[BenchmarkSeries]:
    """The benchmarks of the last night with what they took before. nights: of one class, oldest first."""
    series: dict[str, list[float]] = {}
    for night in nights:
        for each in night.benchmarks:
            series.setdefault(each.name, []).append(each.seconds["median"])
    tonight = nights[-1].benchmarks if nights else ()
    return [BenchmarkSeries(name=each.name, series=tuple(series[each.name])) for each in tonight]


def information_notes(nights: Sequence[Night]) -> list[str]:
    """What lies over its median of the last nights of the class by more than noise does. nights: oldest first."""
    if not nights:
        return []
    found = []
    for measured in nights[-1].measured:
        before = [
            each.information
            for night in nights[-1 - WINDOW : -1]
            if (each := night.of(measured.subject)) is not None and each.fingerprint == measured.fingerprint
        ]
        for name, factor in FAR.items():
            known = [figures[name] for figures in before if name in figures]
            value = measured.information.get(name)
            if value is None or len(known) < FEWEST:
                continue
            usual = statistics.median(known)
            if value > factor * usual > 0:
                found.append(f"{measured.subject.label}: {_words(name, value)}, usually {_words(name, usual)}")
    return found + _slow_benchmarks(nights)


def _slow_benchmarks(nights: Sequence[Night]) -> list[str]:
    found = []
    for each in benchmark_series(nights):
        before, median_s = each.series[-1 - WINDOW : -1], each.series[-1]
        if len(before) >= FEWEST and median_s > FAR["search_wall_s"] * (usual := statistics.median(before)):
            found.append(f"{each.name}: {readable_seconds(median_s)}, usually {readable_seconds(usual)}")
    return found


def _words(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{readable_bytes(round(value))} at its largest"
    return f"{readable_seconds(value)} of wall time"
