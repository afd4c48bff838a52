"""Fits in child processes, where plugins run: each fold is fitted to its runs, then predicts those left out."""

import faulthandler
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from msgspec.structs import replace

from pipebench.bench.accuracy.errand import INDEXED, RUN_S, Told
from pipebench.bench.accuracy.expression import ExpressedRun
from pipebench.bench.accuracy.measurement import Predictor
from pipebench.bench.calibration.fitting import Fit, Simulation, fit_constants
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Channel, Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
    server_of_its_own,
)
from pipebench.bench.services import HostServices
from pipebench.domain.errors import PipebenchError
from pipebench.domain.tuning import Tuning
from pipebench.domain.value import Value
from pipebench.hooks.manager import Host

WORK = f"{__name__}:fit_errand"
FOLD_S, FOLD_RUNS = 1800.0, 50
"""For one fold of so many runs; then its process is ended. More runs have more time."""


class Fold(Value, frozen=True, kw_only=True):
    """Numbers of runs. fitted: those that the fit sees. predicted: those that are predicted with what it found."""

    fitted: tuple[int, ...]
    predicted: tuple[int, ...]


class KernelSum(Value, frozen=True, kw_only=True):
    """What a trace says: seconds of kernels of one rank of a run, which goes by its number."""

    run: int
    rank: int
    measured_s: float


class FoldTask(Value, frozen=True, kw_only=True):
    """runs: of one device and framework. measured_s: of each. usual: the constants without calibration.

    kernels: what traces say of them. Each is fitted with its run, as one more measured time.
    afresh: see `fit_constants`.
    """

    device: str
    framework: str
    runs: tuple[ExpressedRun, ...]
    measured_s: tuple[float, ...]
    usual: dict[str, float]
    folds: tuple[Fold, ...]
    kernels: tuple[KernelSum, ...] = ()
    afresh: bool = False


class FoldFit(Value, frozen=True, kw_only=True):
    """What came of a fold. predicted_s: seconds of its predicted runs, in their order.

    kernels_s: of the traced ones of them, seconds of kernels with the usual constants and with the fitted ones, by
    the number of the run.
    """

    fit: Fit
    predicted_s: tuple[float, ...]
    kernels_s: dict[int, tuple[float, float]] = {}


_TASK = msgspec.msgpack.Decoder(FoldTask)
_FIT = msgspec.msgpack.Decoder(FoldFit)


def fit_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Send the fit of each fold. given: the task."""
    os.chdir(channel.folder)
    task = _TASK.decode(given)
    simulate = simulation(host, task)
    for fold in task.folds:
        faulthandler.dump_traceback_later(_fold_s(task), exit=True)
        made = fold_fit(task, fold, simulate)
        faulthandler.cancel_dump_traceback_later()
        channel.send(msgspec.msgpack.encode(made))


def _fold_s(task: FoldTask) -> float:
    return FOLD_S * max(1.0, len(task.runs) / FOLD_RUNS)


def simulation(host: Host, task: FoldTask) -> Simulation:
    """Simulates runs of a task, behind their numbers its sums of kernels; each at a point once."""
    predictor = Predictor(HostServices(host))
    known: dict[tuple[int, tuple[float, ...]], float] = {}

    def simulated_s(number: int, tuning: Tuning) -> float:
        if number < len(task.runs):
            return predictor.seconds(replace(task.runs[number], tuning=tuning))
        traced = task.kernels[number - len(task.runs)]
        return predictor.kernels_s(replace(task.runs[traced.run], tuning=tuning), traced.rank)

    def simulate(number: int, constants: Mapping[str, float]) -> float:
        key = number, tuple(constants.values())
        if key not in known:
            tuning = Tuning(device=task.device, framework=task.framework, constants=dict(constants))
            known[key] = simulated_s(number, tuning)
        return known[key]

    return simulate


def fold_fit(task: FoldTask, fold: Fold, simulate: Simulation) -> FoldFit:
    """The fit of one fold. The measured times of runs that it does not fit stay out of its sight."""
    measured = {number: task.measured_s[number] for number in fold.fitted}
    traced = dict(enumerate(task.kernels, len(task.runs)))
    measured |= {number: each.measured_s for number, each in traced.items() if each.run in fold.fitted}
    fit = fit_constants(tuple(measured), measured, task.usual, simulate, task.afresh)
    return FoldFit(
        fit=fit,
        predicted_s=tuple(simulate(number, fit.constants) for number in fold.predicted),
        kernels_s={
            each.run: (simulate(number, task.usual), simulate(number, fit.constants))
            for number, each in traced.items()
            if each.run in fold.predicted
        },
    )


def fit_folds(host: Host, task: FoldTask, jobs: int = 1, told: Told | None = None) -> list[FoldFit]:
    """The fit of each fold. jobs: processes side by side. told: how many folds are done."""
    if host.code_here:
        simulate = simulation(host, task)
        return [fold_fit(task, fold, simulate) for fold in task.folds]
    shares = [task.folds[first::jobs] for first in range(min(jobs, len(task.folds)))]
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if told is not None:
            told(done)

    def work(folds: Sequence[Fold]) -> list[FoldFit]:
        part = replace(task, folds=tuple(folds))
        if len(shares) == 1:
            return _in_child(host, part, count)
        with server_of_its_own():
            return _in_child(host, part, count)

    with ThreadPoolExecutor(max_workers=len(shares)) as pool:
        made = list(pool.map(work, shares))
    return [made[number % len(shares)][number // len(shares)] for number in range(len(task.folds))]


def _in_child(host: Host, task: FoldTask, count: Callable[[], None]) -> list[FoldFit]:
    errand = Errand(
        work=WORK,
        given=msgspec.msgpack.encode(task),
        index={slot: {name: each.entry for name, each in host.slot(slot).items()} for slot in INDEXED},
        folder=errand_folder(),
        environment=child_environment(),
        memory_bytes=SEARCH_MEMORY_BYTES,
    )
    ended = isolation().run(errand, _fold_s(task) * len(task.folds) + RUN_S, heard=lambda _: count())
    try:
        found = [_FIT.decode(message) for message in ended.messages[: len(task.folds)]]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PipebenchError(f"a process that fits constants sent what cannot be read: {error}") from None
    if len(found) < len(task.folds):
        raise PipebenchError(f"constants were not fitted: {ended.words}")
    return found
