"""Seconds in numba's compiler: by the clock, and of this process, which a busy machine makes fewer."""

import time

import pytest
from numba.core import event

from pipebench.bench.searches.request import SearchReport
from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.trials.trial import _times


def test_nested_compilations_count_once_and_waiting_is_no_cpu_time() -> None:
    began = time.perf_counter()
    with CompilationWatch() as watch:
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(0.2)
        time.sleep(0.3)
    with event.trigger_event("numba:compile"):
        time.sleep(0.1)
    assert 0.2 <= watch.seconds <= time.perf_counter() - began - 0.4
    assert watch.cpu_seconds < 0.2


def test_a_search_that_compiled_beside_others_keeps_its_cpu_time() -> None:
    """Ten seconds of compiling took four of CPU; the search itself one."""
    report = SearchReport(status="found", cold_cpu_s=5.0, cold_s=12.0, compile_s=10.0, compile_cpu_s=4.0)
    times = _times(report)
    assert (times["search_cpu_s"], times["search_wall_s"]) == pytest.approx((1.0, 2.0))
