"""All expressed runs predicted in child processes, many in one: plugins run there and nowhere else."""

import faulthandler
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from pipebench.bench.accuracy.expression import ExpressedRun
from pipebench.bench.accuracy.measurement import Predictor, Simulated
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.ordering.errand import play
from pipebench.bench.searches.isolated import PREPARE_S, HandOver, after_compiling
from pipebench.bench.searches.isolation.child import Channel, Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
    server_of_its_own,
)
from pipebench.bench.searches.isolation.conversation import ChildExit, Handover
from pipebench.bench.services import HostServices
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.discovery import SUITE, cause
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference

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


_NAMES = msgspec.msgpack.Decoder(tuple[str, ...])
_RUNS = msgspec.msgpack.Decoder(tuple[ExpressedRun, ...])
_PREDICTION = msgspec.msgpack.Decoder(Prediction)


def predict_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Order and simulate toy problems, receive the runs, and send one prediction for each.

    given: the schedulers that order the toys. What `receive` says about it: seconds in the compiler.
    """
    os.chdir(channel.folder)
    services = HostServices(host)
    compiled_s = play(services, "sync", _NAMES.decode(given), simulated=True)
    payload = channel.receive(msgspec.msgpack.encode(compiled_s))
    if not payload:
        return
    predictor = Predictor(services)
    for run in _RUNS.decode(payload):
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
        ended = _run(host, left)
        try:
            sent = [_PREDICTION.decode(message) for message in ended.messages[: len(left)]]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PipebenchError(f"a process that predicts runs sent what cannot be read: {error}") from None
        found += sent
        if len(sent) < len(left):
            found.append(Prediction(reason=ended.words))
    return found


def _run(host: Host, runs: Sequence[ExpressedRun]) -> ChildExit:
    """A child that predicts runs. The suite's kernels are compiled before, and kept, by one that sees none."""
    errand = Errand(
        work=WORK,
        given=msgspec.msgpack.encode(own_schedulers(host, runs)),
        index={slot: {name: each.entry for name, each in host.slot(slot).items()} for slot in INDEXED},
        folder=errand_folder(),
        environment=child_environment(),
        memory_bytes=SEARCH_MEMORY_BYTES,
    )

    def run(hand_over: HandOver) -> ChildExit:
        handover = Handover(payload=hand_over, limit_s=RUN_S * len(runs))
        return isolation().run(errand, PREPARE_S, handover, SUITE)

    ended, _ = after_compiling(
        run, msgspec.msgpack.encode(tuple(runs)), lambda: isolation().folders.keep_kernels(SUITE)
    )
    return ended


def own_schedulers(host: Host, runs: Sequence[ExpressedRun]) -> tuple[str, ...]:
    """Those of the runs' schedulers that ship with the suite. What others compile is no kernel of the suite's."""
    names = dict.fromkeys(run.scheduler for run in runs)
    slot = host.slot("schedulers")
    found = {name: slot.get(parse_reference(name).name) for name in names}
    return tuple(name for name, each in found.items() if each and each.provider.ships)
