"""Seconds in numba's compiler, and the times of a search."""

import time

from numba.core import event

from pipebench.bench.searches.isolated import TimedSearch
from pipebench.bench.searches.request import Sample, SearchReport
from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.trials.trial import _times


def test_nested_compilations_count_once() -> None:
    began = time.perf_counter()
    with CompilationWatch() as watch:
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(0.2)
        time.sleep(0.3)
    with event.trigger_event("numba:compile"):
        time.sleep(0.1)
    assert 0.2 <= watch.seconds <= time.perf_counter() - began - 0.4
    assert watch.cpu_seconds < 0.2
    assert not watch.running


def test_one_search_alone_gives_the_times() -> None:
    first = Sample(cpu_s=5.0, wall_s=6.0)
    times = _times(TimedSearch(report=SearchReport(status="found"), first=first, prepare_s=10.0))
    assert times == {"search_cpu_s": 5.0, "search_wall_s": 6.0, "search_cold_s": 16.0}
