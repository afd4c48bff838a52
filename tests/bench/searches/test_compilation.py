"""Seconds in numba's compiler, and the times of a search."""

import time

import msgspec
import pytest
from numba.core import event

from pipebench.bench.searches.isolated import HandOver, TimedSearch, after_compiling
from pipebench.bench.searches.isolation.conversation import ChildExit
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


class Children:
    """They say what they compiled, one after the other. told: what they are handed, and when kernels are kept."""

    def __init__(self, *abouts: bytes) -> None:
        self._abouts = iter(abouts)
        self.told: list[object] = []

    def run(self, hand_over: HandOver) -> ChildExit:
        self.told.append(hand_over(next(self._abouts)))
        return ChildExit(prepared=True)

    def keep(self) -> None:
        self.told.append("kept")


def test_kernels_are_kept_of_a_child_that_saw_no_problem() -> None:
    """The next one sees it, whatever it compiled."""
    children = Children(msgspec.msgpack.encode(1.5), msgspec.msgpack.encode(0.5))
    assert after_compiling(children.run, b"problem", children.keep)[1] == 2.0
    assert children.told == [None, "kept", b"problem"]


@pytest.mark.parametrize("about", [msgspec.msgpack.encode(0.0), b"no number"])
def test_a_child_that_compiled_nothing_sees_the_problem(about: bytes) -> None:
    children = Children(about)
    after_compiling(children.run, b"problem", children.keep)
    assert children.told == [b"problem"]


def test_where_all_is_kept_the_first_child_sees_the_problem() -> None:
    children = Children(msgspec.msgpack.encode(1.5))
    after_compiling(children.run, b"problem", None)
    assert children.told == [b"problem"]
