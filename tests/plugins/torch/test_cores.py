"""Cores are dealt out in blocks, and threads are started that push no other from a core."""

import os
import threading

import pytest

from pipebench_torch.processes import cores

linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs the scheduler of Linux")


def machine(monkeypatch: pytest.MonkeyPatch, allowed: set[int], busy: list[dict[int, int]]) -> None:
    """A process that may use some cores; `busy` are the ticks by core at each look."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr(cores, "_busy_ticks", lambda: busy.pop(0) if busy else {})
    monkeypatch.setattr(cores, "LOOK_S", 0)


@linux
def test_no_two_processes_share_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {0, 1, 2, 5}, [])
    assert cores.cores_for(4, 1) == ((0,), (1,), (2,), (5,))
    assert cores.cores_for(2, 2) == ((0, 1), (2, 5))


@linux
def test_too_few_cores_are_not_dealt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {0, 1}, [])
    assert cores.cores_for(3, 1) == cores.cores_for(1, 3) == ()


@linux
def test_the_idlest_cores_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Core 0 was busiest since the machine started, core 2 is busy now."""
    machine(monkeypatch, {0, 1, 2, 3}, [{0: 900, 1: 5, 2: 5, 3: 5}, {0: 900, 1: 7, 2: 15, 3: 6}])
    assert cores.cores_for(3, 1) == ((0,), (3,), (1,))


@linux
def test_a_process_keeps_to_its_cores() -> None:
    before = os.sched_getaffinity(0)
    try:
        cores.keep_to((min(before),))
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


@linux
def test_patient_threads_are_those_started_between() -> None:
    def policy_of_a_thread() -> int:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()
        return found[0]

    before = os.sched_getscheduler(0)
    try:
        cores.start_patient_threads()
        assert policy_of_a_thread() == os.SCHED_BATCH
        cores.start_ordinary_threads()
        assert policy_of_a_thread() == os.SCHED_OTHER
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


@linux
def test_ticks_of_cores_are_counted(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Neither idling nor waiting for a disk is work."""
    stat = tmp_path / "stat"
    monkeypatch.setattr(cores, "STAT", stat)
    assert cores._busy_ticks() == {}
    stat.write_text("cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\ncpu12 0 0 7 1 1 0 0 0 0 0\nintr 5\n")
    assert cores._busy_ticks() == {0: 21, 12: 7}
