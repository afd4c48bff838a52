"""Run many trials, one timing trial at a time on a machine; what is finished is kept at once."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pipebench.bench.machine.flock import Kind, acquire
from pipebench.bench.searches.compilation import compile_side_by_side
from pipebench.bench.store.sources import host_source
from pipebench.bench.sweeps.assignment import decode_delivery, encode_assignment
from pipebench.bench.sweeps.backends import on_dask, on_loky
from pipebench.bench.sweeps.run_plan import FinishedTrial, RunPlan
from pipebench.bench.trials.trial import Outcome, Searches, Trial, run_trial
from pipebench.hooks.manager import Host

PATIENCE_S = 30.0
POLL_S = 0.02


@contextlib.contextmanager
def machine_to_itself(patience_s: float = PATIENCE_S, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold the machine for one trial; False when another run still had it after that many seconds.

    waiting: called once when the machine is not free at once.
    """
    with _hold_lock("exclusive", patience_s, waiting) as held:
        yield held


@contextlib.contextmanager
def machine_shared() -> Iterator[None]:
    """Say that trials run side by side, as long as they do: timing trials of other runs wait, or are tagged."""
    with _hold_lock("shared", PATIENCE_S):
        yield


@contextlib.contextmanager
def _hold_lock(kind: Kind, patience_s: float, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    try:
        descriptor = os.open(_lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield True  # no folder for the lock: nobody else can hold it either
        return
    try:
        if (free := acquire(descriptor, kind, 0.0, POLL_S)) or patience_s <= 0:
            yield free
            return
        if waiting is not None:
            waiting()
        yield acquire(descriptor, kind, patience_s, POLL_S)
    finally:
        os.close(descriptor)


def _lock_file() -> Path:
    return Path(tempfile.gettempdir()) / f"pipebench-{os.getuid()}.lock"


class TrialWatcher(Protocol):
    """Who is told how a sweep goes."""

    def compiling(self, planners: list[str]) -> None:
        """Kernels of these planners are about to be compiled, which takes a while."""

    def starting(self, trial: Trial) -> None:
        """A trial is about to run (not told of those that run side by side)."""

    def waiting(self) -> None:
        """Another run of pipebench has the machine."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where trials run. jobs 1 and no address: here, one at a time, the only way to compare search times.

    patience_s: how long a trial here waits for other runs of pipebench; then it runs beside them, and its row
    says so.
    """

    jobs: int = 1
    dask_address: str | None = None
    patience_s: float = PATIENCE_S

    @property
    def parallel(self) -> bool:
        """Whether trials run side by side."""
        return self.jobs > 1 or self.dask_address is not None


def run_trials(
    host: Host, agenda: RunPlan, where: Where, watcher: TrialWatcher | None = None
) -> Iterator[FinishedTrial]:
    """Run what is left of the trials.

    Each outcome is in the store, on disk, before it is given and before the next trial starts.
    """
    running = _side_by_side(host, agenda, where) if where.parallel else _one_by_one(host, agenda, where, watcher)
    for position, outcome in running:
        yield FinishedTrial(position, agenda.keep(position, outcome))


def _one_by_one(
    host: Host, agenda: RunPlan, where: Where, watcher: TrialWatcher | None
) -> Iterator[tuple[int, Outcome]]:
    trials = [agenda.trials[position] for position in agenda.to_run]
    if not trials:
        return
    waiting = watcher.waiting if watcher else None
    with machine_to_itself(where.patience_s, waiting) as alone:
        searching = [(trial.planner, trial.searcher(trial.planning)) for trial in trials if not trial.planner.here]
        compile_side_by_side(host, searching, watcher.compiling if watcher else lambda _: None)
    patience_s = where.patience_s if alone else 0.0  # who did not go away once will not for each trial
    searches = Searches()
    for position in agenda.to_run:
        trial = agenda.trials[position]
        if watcher is not None:
            watcher.starting(trial)
        with machine_to_itself(patience_s, waiting) as alone:
            yield position, run_trial(host, trial if alone else replace(trial, parallel=True), searches)
        patience_s = where.patience_s if alone else 0.0


def _side_by_side(host: Host, agenda: RunPlan, where: Where) -> Iterator[tuple[int, Outcome]]:
    """Plans made elsewhere are scored here, everything else goes to the workers."""
    here = [position for position in agenda.to_run if agenda.trials[position].planner.here]
    away = [position for position in agenda.to_run if not agenda.trials[position].planner.here]
    for position in here:
        yield position, run_trial(host, replace(agenda.trials[position], parallel=True))
    payloads = [encode_assignment(agenda.trials[position], host_source()) for position in away]
    with machine_shared():
        for place, delivery in _map(payloads, where):
            yield away[place], decode_delivery(delivery, agenda.trials[away[place]])


def _map(payloads: Sequence[bytes], where: Where) -> Iterator[tuple[int, bytes]]:
    if where.dask_address is not None:
        return on_dask(payloads, where.dask_address)
    return on_loky(payloads, where.jobs)
