"""What processes agree on: when a mini-batch begins, how many are measured."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench_torch.machine import Machine
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.job import TaskTimes
from pipebench_torch.running import exchange
from pipebench_torch.running.clocks import ClockComparison, by_rank_0
from pipebench_torch.running.session import MOST_RUNS, Session


@pytest.mark.parametrize("ahead_ns", [-40_000_000, 0, 40_000_000])
def test_a_clock_that_is_off_starts_at_the_same_instant(monkeypatch: pytest.MonkeyPatch, ahead_ns: int) -> None:
    """The clock of this process is ahead of rank 0's; rank 0 said when."""
    instant = time.monotonic_ns() - ahead_ns + 300_000_000
    monkeypatch.setattr(exchange.dist, "barrier", lambda: None)
    monkeypatch.setattr(exchange.dist, "broadcast", lambda box, src: box.fill_(instant))
    exchange.start_together(Machine(), -ahead_ns)
    late_ns = time.monotonic_ns() - ahead_ns - instant
    assert 0 <= late_ns < 1_000_000_000


def test_a_clock_that_gains_is_followed() -> None:
    """A clock that is 7 s ahead at first and gains 40 ppm, compared exactly before and after."""

    def own(instant_ns: int) -> int:
        return instant_ns + 7 * 10**9 + instant_ns * 40 // 10**6

    before, after = (ClockComparison(own(at_ns), at_ns - own(at_ns), 5) for at_ns in (10**9, 61 * 10**9))
    instants = (2 * 10**9, 3 * 10**9, 30 * 10**9, 60 * 10**9)
    begun, begin, end, ended = (own(instant) for instant in instants)
    seen = TaskTimes(begun=begun, ended=ended, begin=(begin,), end=(end,), sent={3: end}, got={4: begin})
    moved = by_rank_0(seen, before, after)
    found = (moved.begun, moved.begin[0], moved.end[0], moved.ended)
    assert max(abs(one - other) for one, other in zip(found, instants, strict=True)) <= 2
    assert (moved.sent, moved.got) == ({3: moved.end[0]}, {4: moved.begin[0]})


def test_what_may_be_an_error_of_the_comparisons_is_not_followed() -> None:
    """The better one of the two holds, and tasks take as long as they took."""
    seen = TaskTimes(begun=1000, ended=2000, begin=(), end=(), sent={}, got={})
    one, other = ClockComparison(0, -70, 30), ClockComparison(3000, -40, 5)
    for before, after in ((one, other), (ClockComparison(0, -40, 5), ClockComparison(3000, -70, 30))):
        moved = by_rank_0(seen, before, after)
        assert (moved.begun, moved.ended) == (960, 1960)
    gained = by_rank_0(seen, ClockComparison(0, -70, 10), ClockComparison(3000, -40, 5))
    assert (gained.begun, gained.ended) == (940, 1950)


def runs(took_s: list[float], monkeypatch: pytest.MonkeyPatch, rounds: int = 1, **options: Any) -> tuple[int, int]:
    """Mini-batches that were run, and those that count; the n-th takes so long, the rest as the last."""
    session: Any = Session.__new__(Session)
    session.job = SimpleNamespace(options=ExecutorOptions(**options))
    session.layout, session.machine = SimpleNamespace(rounds=rounds), Machine()
    done: list[int] = []

    def timed(_: Any) -> TaskTimes:
        took = took_s[min(len(done), len(took_s) - 1)]
        done.append(1)
        return TaskTimes(begun=0, ended=round(took * 1e9), begin=(), end=(), sent={}, got={})

    session._time_run = timed
    session.clocks = SimpleNamespace(compare=lambda: ClockComparison(0, 0, 0))
    monkeypatch.setattr("pipebench_torch.running.session.broadcast_value", lambda value, machine: value)
    counted, _ = session.measure(SimpleNamespace(run=lambda: timed(None)))
    return len(done), len(counted)


def test_short_mini_batches_are_measured_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs([9.0, 0.1], monkeypatch, least_s=0.95) == (11, 10)  # the warm-up tells nothing
    assert runs([9.0, 0.5], monkeypatch) == (6, 5)
    assert runs([0.5], monkeypatch, warmup=0, iterations=1, least_s=0.0) == (1, 1)
    assert runs([1e-6], monkeypatch, warmup=2) == (MOST_RUNS + 2, MOST_RUNS)
    assert runs([1e-6], monkeypatch, rounds=7) == (1, 1)
