"""Runs cases in workers, ends those that hang, and starts another behind a case that cost its worker."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.fuzz.outcomes import LONGEST_S, MOST_BYTES, Outcome

START_S = 120.0
"""A worker has so long to load what it needs."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """inputs: how many, from number `first`. seed: of all draws. only: a part of a target's name.

    workers: processes side by side. patience_s: whoever is silent for so long in a case hangs.
    module: the program of a worker.
    """

    inputs: int
    seed: int = 0
    first: int = 0
    only: str = ""
    workers: int = 1
    patience_s: float = 6 * LONGEST_S
    module: str = "tests.fuzz.worker"


def run(asked: Run, fixed: Path, tell: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """The outcome of every case, in order. tell: is called with each as it comes. fixed: made by a Workshop."""

    def share(number: int) -> list[Outcome]:
        found = []
        for outcome in _share(asked, fixed, asked.first + number):
            tell(outcome)
            found.append(outcome)
        return found

    with ThreadPoolExecutor(asked.workers) as threads:
        shares = list(threads.map(share, range(asked.workers)))
    return sorted((outcome for each in shares for outcome in each), key=lambda outcome: outcome.number)


def _share(asked: Run, fixed: Path, first: int) -> Iterator[Outcome]:
    """The cases first, first + workers, …"""
    end = asked.first + asked.inputs
    while first < end:
        with Worker(asked, fixed, first, end) as worker:
            for outcome in worker.outcomes():
                yield _within_limits(outcome)
                first = outcome.number + asked.workers


def _within_limits(outcome: Outcome) -> Outcome:
    """The outcome, a failure where the case took too long or too much memory."""
    if outcome.failure:
        return outcome
    if outcome.seconds > LONGEST_S:
        return msgspec.structs.replace(outcome, failure="took too long", told=f"{outcome.seconds:.1f} s")
    if outcome.peak_bytes > MOST_BYTES:
        return msgspec.structs.replace(outcome, failure="took too much memory", told=f"{outcome.peak_bytes} bytes")
    return outcome


def _environment() -> dict[str, str]:
    """This one's, in which the checkout and its plugins are found."""
    paths = [str(ROOT), str(ROOT / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}


class Worker:
    """One process of `tests.fuzz.worker`. Leaving the context ends it, with all that it started."""

    def __init__(self, asked: Run, fixed: Path, first: int, end: int) -> None:
        numbers = map(str, (asked.seed, asked.only, first, end, asked.workers))
        command = [sys.executable, "-m", asked.module, str(fixed), *numbers]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
            env=_environment(),
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        self._rest = b""
        self._patience_s = asked.patience_s

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes until there are no more, or until a case costs the worker, which is the last then."""
        number = None
        while (line := self._line(START_S if number is None else self._patience_s)) is not None:
            if not line:
                if number is None and self._process.wait() != 0:
                    raise RuntimeError(f"a worker ended with {self._process.returncode} before its first case")
                if number is not None and self._process.wait() != 0:
                    told = f"exit {self._process.returncode}"
                    yield Outcome(number=number, failure="death of the process", told=told)
                return
            if line.isdigit():
                number = int(line)
            else:
                yield msgspec.json.decode(line, type=Outcome)
        if number is None:
            raise RuntimeError(f"a worker was not ready after {START_S:g} s")
        yield Outcome(
            number=number, failure="hang", told=f"ended after {self._patience_s:g} s", seconds=self._patience_s
        )

    def _line(self, patience_s: float) -> bytes | None:
        """The next line without its end, empty at the end of all, None where none came in time."""
        late = time.monotonic() + patience_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._pipe], [], [], max(0.0, late - time.monotonic()))
            if not ready:
                return None
            read = os.read(self._pipe, 2**16)
            if not read:
                return b""
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line
