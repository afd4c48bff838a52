"""Run many trials: what a store holds already is not run again, and what is finished is kept at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pipebench.bench.store.sources import host_source
from pipebench.bench.sweeps.agenda import Agenda, Finished
from pipebench.bench.sweeps.assignment import assigned, delivered
from pipebench.bench.sweeps.backends.dask import on_dask
from pipebench.bench.sweeps.backends.loky import on_loky
from pipebench.bench.sweeps.exclusive import PATIENCE_S, machine_shared, machine_to_itself
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.hooks.manager import Host


class Watcher(Protocol):
    """Who is told how a sweep goes."""

    def starting(self, trial: Trial) -> None:
        """A trial is about to run (not told of those that run side by side)."""

    def waiting(self) -> None:
        """Another run of pipebench has the machine."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where trials run. jobs 1 and no address: here, one at a time, the only way to compare search times."""

    jobs: int = 1
    dask_address: str | None = None

    @property
    def parallel(self) -> bool:
        """Whether trials run side by side."""
        return self.jobs > 1 or self.dask_address is not None


def run_agenda(host: Host, agenda: Agenda, where: Where, watcher: Watcher | None = None) -> Iterator[Finished]:
    """Run what is left of the trials.

    Each outcome is in the store, on disk, before it is given and before the next trial starts.
    """
    running = _side_by_side(host, agenda, where) if where.parallel else _one_by_one(host, agenda, watcher)
    for position, outcome in running:
        yield Finished(position, agenda.keep(position, outcome))


def _one_by_one(host: Host, agenda: Agenda, watcher: Watcher | None) -> Iterator[tuple[int, Outcome]]:
    patience_s = PATIENCE_S
    for position in agenda.to_run:
        trial = agenda.trials[position]
        if watcher is not None:
            watcher.starting(trial)
        with machine_to_itself(patience_s, watcher.waiting if watcher else None) as alone:
            yield position, run_trial(host, trial if alone else replace(trial, parallel=True))
        patience_s = PATIENCE_S if alone else 0.0  # who did not go away once will not for each trial


def _side_by_side(host: Host, agenda: Agenda, where: Where) -> Iterator[tuple[int, Outcome]]:
    """Plans made elsewhere are scored here, everything else goes to the workers."""
    here = [position for position in agenda.to_run if agenda.trials[position].planner.here]
    away = [position for position in agenda.to_run if not agenda.trials[position].planner.here]
    for position in here:
        yield position, run_trial(host, replace(agenda.trials[position], parallel=True))
    payloads = [assigned(agenda.trials[position], host_source()) for position in away]
    with machine_shared():
        for place, delivery in _map(payloads, where):
            yield away[place], delivered(delivery, agenda.trials[away[place]])


def _map(payloads: Sequence[bytes], where: Where) -> Iterator[tuple[int, bytes]]:
    if where.dask_address is not None:
        return on_dask(payloads, where.dask_address)
    return on_loky(payloads, where.jobs)
