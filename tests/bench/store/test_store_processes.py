"""Several processes on one store, and processes that are killed."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tests
from pipebench.bench.store import Store
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored

WRITER = """
import sys
from pipebench.bench.store import Store
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
first, last = int(sys.argv[2]), int(sys.argv[3])
store = Store.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
kept = [store.append(stored(number, output="x" * 3000), PROBLEM, PLAN, SCHEDULE) for number in range(first, last)]
print(sum(kept))
"""


def forked(work: Callable[[], None]) -> int:
    """Run the work in a child process; its number."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(1)


def ended(child: int) -> int:
    """Wait for a child; its status."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def append_all(folder: Path, numbers: range, tell: int | None = None) -> None:
    store = Store.open(folder)
    for number in numbers:
        store.append(stored(number, output="x" * 3000), PROBLEM, PLAN, SCHEDULE)
        if tell is not None:
            os.write(tell, number.to_bytes(4, "big"))


def numbers_in(folder: Path) -> list[int]:
    return [row.row.repetition for row in Store.open(folder).rows()]


def test_two_processes_fill_one_store(tmp_path: Path) -> None:
    """200 rows each, half of them the same ones."""
    root = Path(tests.__file__).parents[1]
    spans = ("0", "200"), ("100", "300")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "store"), *span],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for span in spans
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    kept = [int(writer.communicate(timeout=60)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(kept) == 300
    store = Store.open(tmp_path / "store")
    assert store.notices == []
    assert sorted(row.row.repetition for row in store.rows()) == list(range(300))
    assert len(store.latest()) == 300


@pytest.mark.parametrize("times", range(5))
def test_many_processes_make_one_store_at_once(tmp_path: Path, times: int) -> None:
    start = time.monotonic() + 0.02

    def work(number: int) -> None:
        while time.monotonic() < start:
            pass
        append_all(tmp_path / "new" / "store", range(number, number + 2))
        os._exit(0)

    children = [forked(lambda number=number: work(number)) for number in range(6)]  # type: ignore[misc]
    assert [ended(child) for child in children] == [0] * 6
    assert sorted(numbers_in(tmp_path / "new" / "store")) == list(range(7))


def test_a_writer_killed_at_random_moments_loses_nothing_that_it_was_told_is_kept(tmp_path: Path) -> None:
    dice = random.Random(20)
    killed = 0
    done: list[int] = []
    for turn in range(20):
        reading, writing = os.pipe()
        left = range(len(done), 10**6)

        def work(left: range = left, writing: int = writing) -> None:
            append_all(tmp_path / "store", left, writing)
            os._exit(0)

        child = forked(work)
        os.close(writing)
        if turn % 2:  # on a busy machine nobody gets through in the time below
            select.select([reading], [], [], 60)
        time.sleep(dice.uniform(0.001, 0.03))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        killed += ended(child) == -signal.SIGKILL
        with open(reading, "rb") as told:
            data = told.read()
        acknowledged = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
        found = numbers_in(tmp_path / "store")
        assert found[: len(done) + len(acknowledged)] == [*done, *acknowledged]
        assert len(found) <= len(done) + len(acknowledged) + 1
        done = found
    assert killed == 20
    assert done  # some got through
    whole = range(len(done) + 10)
    append_all(tmp_path / "store", whole)
    assert numbers_in(tmp_path / "store") == list(whole)
    store = Store.open(tmp_path / "store")
    for row in store.rows():
        assert row.row.plan_id is not None
        assert row.row.schedule_id is not None
    assert store.plan(store.rows()[0].row.plan_id or "") == PLAN
    assert list((tmp_path / "store").rglob("*.tmp")) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_writer_killed_inside_a_line(tmp_path: Path, share: float) -> None:
    append_all(tmp_path, range(3))

    def work() -> None:
        real = os.write

        def half(handle: int, data: bytes) -> int:
            real(handle, bytes(data)[: int(share * len(data))])
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        os.write = half  # type: ignore[assignment]
        append_all(tmp_path, range(3, 5))

    assert ended(forked(work)) == -signal.SIGKILL
    store = Store.open(tmp_path)
    assert [row.row.repetition for row in store.rows()] == [0, 1, 2]
    assert len(store.notices) == (1 if share else 0)
    append_all(tmp_path, range(5))
    assert numbers_in(tmp_path) == list(range(5))
    assert Store.open(tmp_path).notices == []


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("call", range(5))
def test_a_writer_killed_at_each_step_of_a_new_store(tmp_path: Path, moment: str, call: int) -> None:
    def work() -> None:
        calls = 0
        real = getattr(os, moment)

        def dying(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls > call:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)

        setattr(os, moment, dying)
        append_all(tmp_path / "store", range(2))
        os._exit(0)

    assert ended(forked(work)) in (-signal.SIGKILL, 0)
    append_all(tmp_path / "store", range(3))
    assert numbers_in(tmp_path / "store") == [0, 1, 2]
    assert Store.open(tmp_path / "store").problem(PROBLEM.problem_id) == PROBLEM
    assert list((tmp_path / "store").rglob("*.tmp")) == []


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    store = Store.open(tmp_path)

    def work() -> None:
        from pipebench.bench.store.access import hold_lock

        with hold_lock(tmp_path / "lock"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(forked(work)) == -signal.SIGKILL
    assert store.append(stored(1), PROBLEM)
