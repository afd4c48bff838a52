"""All expressed runs predicted in child processes, many in one: plugins run there and nowhere else."""

import faulthandler
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from pipebench.bench.accuracy.expression import ExpressedRun
from pipebench.bench.accuracy.measurement import Predictor, Simulated
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Channel, Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
    server_of_its_own,
)
from pipebench.bench.services import HostServices
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.discovery import cause
from pipebench.hooks.manager import Host
from pipebench.system.endings import exit_text

WORK = f"{__name__}:predict_errand"
RUN_S = 60.0
"""For one run; then its process is ended."""
MOST_TOGETHER, MOST_DEVICES_TOGETHER = 400, 1_000_000
"""Runs, and devices of their clusters, in one errand."""
INDEXED = ("models", "profilers", "planners", "schedulers", "executors")
Told = Callable[[int], None]


class Prediction(Value, frozen=True, kw_only=True):
    """What came of a run. reason: one line, where there is no prediction."""

    simulated: Simulated | None = None
    reason: str = ""


_RUNS = msgspec.msgpack.Decoder(tuple[ExpressedRun, ...])
_PREDICTION = msgspec.msgpack.Decoder(Prediction)


def predict_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Send one prediction for each run. given: the runs."""
    os.chdir(channel.folder)
    predictor = Predictor(HostServices(host))
    for run in _RUNS.decode(given):
        faulthandler.dump_traceback_later(RUN_S, exit=True)
        made = prediction(predictor, run)
        faulthandler.cancel_dump_traceback_later()
        channel.send(msgspec.msgpack.encode(made))


def prediction(predictor: Predictor, run: ExpressedRun) -> Prediction:
    """One run. Raises nothing but KeyboardInterrupt."""
    try:
        return Prediction(simulated=predictor.predict(run))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything; it costs its own run only
        text = error.message if isinstance(error, PipebenchError) else cause(error)
        return Prediction(reason=one_line(text))


def predict_all(
    host: Host, runs: Sequence[ExpressedRun], jobs: int = 1, told: Told | None = None
) -> list[Prediction]:
    """A prediction for each run. jobs: processes side by side. told: how many are done."""
    if host.code_here:
        predictor = Predictor(HostServices(host))
        return [prediction(predictor, run) for run in runs]
    order = sorted(range(len(runs)), key=lambda at: _likeness(runs[at]))
    batches = _batches(runs, order, jobs)
    replies: dict[int, Prediction] = {}

    def work(positions: list[int]) -> list[Prediction]:
        if jobs == 1:
            return _in_child(host, [runs[at] for at in positions])
        with server_of_its_own():
            return _in_child(host, [runs[at] for at in positions])

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for positions, made in zip(batches, pool.map(work, batches), strict=True):
            replies |= dict(zip(positions, made, strict=True))
            if told is not None:
                told(len(replies))
    return [replies[at] for at in range(len(runs))]


def _likeness(run: ExpressedRun) -> tuple[str, str, int]:
    """Runs that are equal in this share a graph and mostly a profile."""
    spec = run.spec
    return spec.model or "", spec.profiler, (spec.micro_batch or 1) // (spec.dp or 1)


def _batches(runs: Sequence[ExpressedRun], order: Sequence[int], jobs: int) -> list[list[int]]:
    most = min(MOST_TOGETHER, -(-len(runs) // jobs))
    batches: list[list[int]] = []
    devices = 0
    for at in order:
        devices += runs[at].cluster.size
        if not batches or len(batches[-1]) >= most or devices > MOST_DEVICES_TOGETHER:
            batches.append([])
            devices = runs[at].cluster.size
        batches[-1].append(at)
    return batches


def _in_child(host: Host, runs: Sequence[ExpressedRun]) -> list[Prediction]:
    """One for each run. Where a process ends early, the run that ended it has none; the others go on."""
    found: list[Prediction] = []
    while left := runs[len(found) :]:
        errand = Errand(
            work=WORK,
            given=msgspec.msgpack.encode(tuple(left)),
            index={slot: {name: each.entry for name, each in host.slot(slot).items()} for slot in INDEXED},
            folder=errand_folder(),
            environment=child_environment(),
            memory_bytes=SEARCH_MEMORY_BYTES,
        )
        ended = isolation().run(errand, RUN_S * len(left))
        try:
            sent = [_PREDICTION.decode(message) for message in ended.messages[: len(left)]]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PipebenchError(f"a process that predicts runs sent what cannot be read: {error}") from None
        found += sent
        if len(sent) < len(left):
            found.append(Prediction(reason=f"its process {exit_text(ended.code)}"))
    return found
