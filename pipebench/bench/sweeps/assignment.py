"""A trial as a value that any process can run, and what it delivers."""

import os
from functools import cache

import msgspec

from pipebench.bench.cage.installed import installed_host
from pipebench.bench.components import ready_planner
from pipebench.bench.problems.workload import Workload
from pipebench.bench.searches.isolation.wire import bytes_as_text, text_of_bytes
from pipebench.bench.trials.trial import Outcome, Trial, run_trial
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference


class TrialAssignment(Value, frozen=True, kw_only=True):
    """The fields of a Trial with its problem; planner and schedulers by name, found again where it runs.

    workload: the name of the workload.
    folder: the folder from which relative files are meant, a letter for each byte.
    sources: hash of the suite's code, which must be the same where it runs.
    trusted: import paths out of files that executors may import.
    """

    model: str
    problem: Problem
    workload: str
    planner: str
    scheduler: str | None
    offered: tuple[str, ...]
    executors: tuple[str, ...]
    repeat: int
    timeout_s: float
    memory_bytes: int
    coarsen: int
    seed: int
    repetition: int
    folder: str
    sources: str
    trusted: tuple[str, ...] = ()


class Delivery(Value, frozen=True, kw_only=True):
    """What a worker sends back; error: why it could not run the trial at all."""

    row: Row | None = None
    plan: Plan | None = None
    schedule: Schedule | None = None
    compile_s: float = 0.0
    error: str = ""


def encode_assignment(trial: Trial, sources: str) -> bytes:
    """The trial for a worker."""
    workload = trial.workload
    assignment = TrialAssignment(
        model=workload.model,
        problem=workload.problem(trial.regime),
        workload=workload.name,
        planner=trial.planner.label,
        scheduler=trial.scheduler,
        offered=trial.offered,
        executors=trial.executors,
        repeat=trial.repeat,
        timeout_s=trial.timeout_s,
        memory_bytes=trial.memory_bytes,
        coarsen=trial.coarsen,
        seed=trial.seed,
        repetition=trial.repetition,
        folder=bytes_as_text(os.getcwd()),
        sources=sources,
        trusted=tuple(sorted(trial.trusted)),
    )
    return msgspec.msgpack.encode(assignment)


def decode_delivery(payload: bytes, trial: Trial) -> Outcome:
    """The outcome of the trial. Raises PipebenchError when the worker could not run it."""
    try:
        delivery = msgspec.msgpack.decode(payload, type=Delivery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PipebenchError(
            f"a worker sent what cannot be read: {error}", "run the same version everywhere"
        ) from None
    if delivery.row is None:
        raise PipebenchError(f"a worker cannot run {trial.planner.label}: {delivery.error}")
    problem = trial.workload.problem(trial.regime)
    return Outcome(delivery.row, problem, delivery.plan, delivery.schedule, compile_s=delivery.compile_s)


def work(payload: bytes) -> bytes:
    """Run an assignment in this process and give its delivery; called by name in every worker."""
    try:
        outcome = _run(payload)
    except PipebenchError as error:
        return msgspec.msgpack.encode(Delivery(error=str(error)))
    delivery = Delivery(row=outcome.row, plan=outcome.plan, schedule=outcome.schedule, compile_s=outcome.compile_s)
    return msgspec.msgpack.encode(delivery)


def _run(payload: bytes) -> Outcome:
    from pipebench.bench.store.sources import host_source

    try:
        given = msgspec.msgpack.decode(payload, type=TrialAssignment)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PipebenchError(
            f"the assignment cannot be read: {error}", "run the same version everywhere"
        ) from None
    if given.sources != host_source():
        raise PipebenchError("it runs other code of pipebench", "install the same version everywhere")
    if os.path.isdir(folder := text_of_bytes(given.folder)):
        os.chdir(folder)
    host = _host()
    trial = Trial(
        workload=Workload(given.model, given.problem, given.workload),
        regime=given.problem.regime.mode,
        planner=ready_planner(host, parse_reference(given.planner)),
        scheduler=given.scheduler,
        offered=given.offered,
        executors=given.executors,
        repeat=given.repeat,
        timeout_s=given.timeout_s,
        memory_bytes=given.memory_bytes,
        coarsen=given.coarsen,
        seed=given.seed,
        repetition=given.repetition,
        parallel=True,
        trusted=frozenset(given.trusted),
    )
    return run_trial(host, trial)


@cache
def _host() -> Host:
    return installed_host()
