"""What a call prints and leaves behind, seen from inside its process."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

KEPT_LETTERS = 200
WORKERS_END_S = 0.5
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


class Seen:
    """What was seen of one call."""

    def __init__(self) -> None:
        self.printed = ""
        self.left: tuple[str, ...] = ()
        self.wall_s = 0.0
        self.cpu_s = 0.0
        self.workers = 0


@contextmanager
def observed(kill_worker: bool) -> Iterator[Seen]:
    """Watch what happens inside; the result is complete after the block, whatever it raises."""
    seen = Seen()
    before = _surroundings()
    watch = _Workers(kill_worker)
    sys.stdout.flush()
    kept = os.dup(1)
    with TemporaryFile() as output:
        os.dup2(output.fileno(), 1)
        watch.start()
        began, spent = time.monotonic(), _cpu_s()
        try:
            yield seen
        finally:
            seen.wall_s, seen.cpu_s = time.monotonic() - began, _cpu_s() - spent
            seen.workers = watch.stop()
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
            output.seek(0)
            seen.printed = output.read(KEPT_LETTERS).decode(errors="replace")
            seen.left = _differences(before)


def _cpu_s() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def fresh_randomness() -> None:
    """Random numbers that nobody seeded differ from process to process, as they do for a user."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def children() -> list[int]:
    """The processes that this one has started; only Linux says."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            continue
    return found


def _surroundings() -> dict[str, object]:
    return {
        "the current folder": os.getcwd(),
        "environment variables": dict(os.environ),
        "sys.path": list(sys.path),
        "signal handlers": [signal.getsignal(number) for number in HANDLED],
        "sys.stdout": sys.stdout,
        "the recursion limit": sys.getrecursionlimit(),
        "files in the current folder": sorted(os.listdir()),
    }


def _differences(before: dict[str, object]) -> tuple[str, ...]:
    after = _surroundings()
    found = [f"{name} changed" for name, value in before.items() if after[name] != value]
    threads = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    found += [f"thread {thread.name!r} still runs" for thread in threads if not thread.daemon]
    ended = time.monotonic() + WORKERS_END_S
    while (alive := _alive()) and time.monotonic() < ended:
        time.sleep(0.02)
    found += [f"{len(alive)} process(es) still run"] if alive else []
    return tuple(found)


def _alive() -> list[int]:
    """Children that are neither gone nor zombies, multiprocessing's resource tracker apart."""
    found = []
    for process in children():
        try:
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if words[0] != "Z" and b"resource_tracker" not in command and b"forkserver" not in command:
            found.append(process)
    return found


class _Workers:
    """Counts the processes that a call starts, and kills the first where that is asked."""

    def __init__(self, kill: bool) -> None:
        self._kill = kill
        self._seen: set[int] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kit", daemon=True)

    def start(self) -> None:
        if self._kill:
            self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        if self._kill:
            self._thread.join()
        return len(self._seen)

    def _run(self) -> None:
        while not self._stopped.wait(0.002):
            for process in _alive():
                if not self._seen:
                    os.kill(process, signal.SIGKILL)
                self._seen.add(process)
