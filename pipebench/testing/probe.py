"""The child's side: make calls in one process, and send an answer with what each printed and left behind."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec

from pipebench.bench.components import ready_planner
from pipebench.bench.plugin_results import (
    exact_counters,
    exact_graph,
    exact_profile,
    exact_result,
    exact_schedule,
    exact_trace,
)
from pipebench.bench.searches.isolation.child import Channel
from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.services import HostServices
from pipebench.domain.artefact import Cell, Claim, Figure
from pipebench.domain.errors import (
    InfeasibleProblem,
    InvalidValue,
    PipebenchError,
    PluginFailed,
    UnsupportedProblem,
)
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, DeadlineReached, ProfileRequest
from pipebench.hooks.descriptors import Component, Planner
from pipebench.hooks.discovery import cause, place
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference, typed_options
from pipebench.testing.calls import Answer, Call, Ending
from pipebench.testing.footprint import Originals, Reach, spent_cpu_s, unreaped


def exact_cells(name: str, made: Any) -> tuple[Cell, ...]:
    """The cells of an artefact's small part. Raises PipebenchError for what is no cell."""
    cells = tuple(made.suite(False))
    if not all(isinstance(cell, Cell) for cell in cells):
        raise PipebenchError(f"artefact {name!r}: suite(False) holds what is no Cell")
    return cells


def artefact_flaws(made: Any) -> Iterator[str]:
    """Without results: claims with quotes, a suite to run, one finding for each claim, a figure."""
    claims = made.claims
    if not claims or not all(isinstance(claim, Claim) for claim in claims):
        yield "it has no claims of the paper"
    parts = {full: len(made.suite(full)) for full in (False, True)}
    if not parts[False]:
        yield "suite(False) has nothing to run"
    if parts[False] > parts[True]:
        yield f"suite(False) has {parts[False]} cells, more than all ({parts[True]})"
    for call in (1, 2):
        found = len(made.judge([]))
        if found != len(claims):
            yield f"judge([]) gives {found} findings for {len(claims)} claims (call {call})"
    if not isinstance(made.series([]), Figure):
        yield "series([]) is no Figure"


KEPT_LETTERS = 200
WORKERS_END_S = 0.5
THREADS = "threads"
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


class PackageFile(Value, frozen=True):
    """A file of an installed package: its bytes, or why there is none."""

    data: bytes = b""
    missing: str = ""


class Observation:
    """What was seen of one call."""

    def __init__(self) -> None:
        self.printed = ""
        self.left: tuple[str, ...] = ()
        self.wall_s = 0.0
        self.cpu_s = 0.0
        self.workers = 0
        self.unreaped = 0


_monotonic_s = time.monotonic  # before a component can replace it


@contextmanager
def observe(kill_worker: bool) -> Iterator[Observation]:
    """Watch what happens inside; the result is complete after the block, whatever it raises."""
    seen = Observation()
    before = _surroundings()
    watch = _Workers(kill_worker)
    sys.stdout.flush()
    kept = os.dup(1)
    with TemporaryFile() as output:
        os.dup2(output.fileno(), 1)
        watch.start()
        began, spent = _monotonic_s(), spent_cpu_s()
        try:
            yield seen
        finally:
            seen.wall_s, seen.cpu_s = _monotonic_s() - began, spent_cpu_s() - spent
            seen.workers = watch.stop()
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
            output.seek(0)
            seen.printed = output.read(KEPT_LETTERS).decode(errors="replace")
            seen.left = _differences(before)
            seen.unreaped = unreaped(children)


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


def _surroundings() -> dict[str, Any]:
    return {
        "the current folder": os.getcwd(),
        "environment variables": dict(os.environ),
        "sys.path": list(sys.path),
        "signal handlers": [signal.getsignal(number) for number in HANDLED],
        "sys.stdout": sys.stdout,
        "the recursion limit": sys.getrecursionlimit(),
        "files in the current folder": sorted(os.listdir()),
        THREADS: set(threading.enumerate()),
    }


def _differences(before: dict[str, Any]) -> tuple[str, ...]:
    after = _surroundings()
    found = [f"{name} changed" for name, value in before.items() if name != THREADS and after[name] != value]
    for thread in sorted(after[THREADS] - before[THREADS], key=lambda thread: thread.name):
        thread.join(WORKERS_END_S)
        if thread.is_alive():
            found.append(f"thread {thread.name!r} still runs after the answer")
    ended = _monotonic_s() + WORKERS_END_S
    while (alive := _alive()) and _monotonic_s() < ended:
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


WORK = "pipebench.testing.probe:make_calls"


def make_calls(host: Host, given: bytes, channel: Channel) -> None:
    """Answer the calls in `given`, in order; a call beyond its `most_s` ends the process with SIGALRM.

    Components work in the child's folder, so that files of others are not taken for theirs.
    """
    fresh_randomness()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    originals, reach = Originals(), Reach(channel.folder)
    for call in msgspec.msgpack.decode(given, type=tuple[Call, ...]):
        signal.setitimer(signal.ITIMER_REAL, call.most_s)
        answer = _answer(host, call, channel.folder, originals, reach)
        signal.setitimer(signal.ITIMER_REAL, 0)
        channel.send(msgspec.msgpack.encode(answer))


SAMPLE = "pipebench.testing.probe:send_package_file"


def send_package_file(host: Host, given: bytes, channel: Channel) -> None:
    """The file that "package:path" names; where there is none, the kind of the error."""
    del host
    package, _, path = given.decode().partition(":")
    try:
        found = PackageFile(data=files(package).joinpath(path).read_bytes())
    except (ImportError, OSError, ValueError, TypeError) as error:
        found = PackageFile(missing=type(error).__name__)
    channel.send(msgspec.msgpack.encode(found))


def _answer(host: Host, call: Call, folder: str, originals: Originals, reach: Reach) -> Answer:
    try:
        component, options, work = _component_of(host, call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's import may raise anything
        return Answer(name=call.name, ending="not loaded", reason=_text(error))
    given = _inputs(call)
    undeclared: list[tuple[str, str]] = []
    services = HostServices(host, seed=call.seed, undeclared=undeclared)
    limit_s = None if call.limit_s is None else time.monotonic() + call.limit_s
    services.deadline_s = limit_s
    context = services.call_context(component, options)
    context.request = _request(call)
    ending: Ending = "returned"
    reason, advised, returned = "", False, None
    with chdir(folder), CompilationWatch() as compilation, observe(call.kill_worker) as seen:
        try:
            with reach.watched():
                returned = work(*_arguments(call, context))
        except BaseException as error:  # a component may raise anything, SystemExit included
            ending, reason, advised = _ending(error, call.slot), _text(error), _is_advised(error)
            reason += place(error) if ending in ("refused", "unusable") else ""
    told: dict[str, Any] = {}
    if ending == "returned":
        try:
            told = _answer_fields(services, component, call, returned)
        except PipebenchError as error:
            wrong = call.slot != "planners" or isinstance(error, PluginFailed)
            ending = "unusable" if wrong else _ending(error, call.slot)
            reason, advised = _text(error), _is_advised(error)
            if isinstance(error, InvalidValue) and ending == "refused":
                reason = f"its plan: {reason}"
    try:
        told["counters"] = exact_counters(call.component, context.counters)
    except PipebenchError as error:
        told["counters_wrong"] = str(error)
    return Answer(
        name=call.name,
        ending=ending,
        reason=reason,
        advised=advised,
        wall_s=seen.wall_s,
        cpu_s=seen.cpu_s,
        compile_s=compilation.seconds,
        spent_s=spent_cpu_s(),
        replaced=originals.replaced(),
        written=reach.written(),
        reached=reach.reached(),
        unreaped=seen.unreaped,
        printed=seen.printed,
        left=seen.left + _changes(given, _inputs(call)),
        workers=seen.workers,
        undeclared=tuple(sorted({name for caller, name in undeclared if caller == component.name})),
        **told,
    )


def _component_of(host: Host, call: Call) -> tuple[Component, Value, Callable[..., Any]]:
    reference = parse_reference(call.component)
    if call.slot == "planners":
        ready = ready_planner(host, reference)
        return ready.component, ready.options, ready.load()
    component = host.find(call.slot, reference.name).component
    return component, typed_options(reference, component.options), host.load(component)


def _arguments(call: Call, context: Context) -> tuple[Any, ...]:
    return {
        "planners": (call.problem, context),
        "schedulers": (call.problem, call.plan, context),
        "executors": (call.problem, call.plan, call.schedule, context),
        "profilers": (call.graph, context),
        "models": (context,),
        "formats": (call.data, context),
        "artefacts": (),
    }[call.slot]


def _request(call: Call) -> Any:
    if call.slot == "profilers":
        return ProfileRequest(devices=call.devices, micro_batches=call.micro_batches)
    return call.request or None


def _answer_fields(services: HostServices, component: Component, call: Call, returned: object) -> dict[str, Any]:
    """What was returned, by the fields of an answer. Raises PipebenchError for what is not of its type."""
    name = call.component
    match call.slot:
        case "planners":
            return _plan_fields(services, component, call.problem, exact_result(name, returned))
        case "schedulers":
            return {"schedule": exact_schedule(name, returned)}
        case "executors":
            return {"trace": exact_trace(name, returned)}
        case "models":
            return {"graph": exact_graph(name, returned)}
        case "artefacts":
            return {"flaws": tuple(artefact_flaws(returned)), "cells": exact_cells(name, returned)}
    return {"profile": exact_profile(f"{call.slot.removesuffix('s')} {name!r}", returned)}


def _plan_fields(
    services: HostServices, component: Component, problem: Problem | None, result: PlanResult
) -> dict[str, Any]:
    """The result, and the schedule that it brings or that the default scheduler makes."""
    assert isinstance(component, Planner)
    assert problem is not None
    bare = msgspec.structs.replace(result, schedule=None)
    if result.schedule is not None:
        return {"result": bare, "schedule": result.schedule, "own_schedule": True}
    services.deadline_s = None
    name = component.default_scheduler.get(problem.regime.mode, "")
    if not name:
        raise PluginFailed(f"it names no scheduler for {problem.regime.mode} and returned no schedule")
    return {"result": bare, "schedule": services.schedule(name, problem, result.plan)}


CHANGED = "its problem was changed"
INPUTS = ("problem", "plan", "schedule", "graph")


def _inputs(call: Call) -> dict[str, bytes | None]:
    """What the component is given, by its name; None where it can no longer be written."""
    found: dict[str, bytes | None] = {}
    for name in INPUTS:
        try:
            found[name] = msgspec.msgpack.encode(getattr(call, name))
        except Exception:  # values are frozen, whoever forces them may have put in anything
            found[name] = None
    return found


def _changes(before: dict[str, bytes | None], after: dict[str, bytes | None]) -> tuple[str, ...]:
    """What the component changed of what it was given."""
    return tuple(f"its {name} was changed" for name in INPUTS if before[name] != after[name])


def _is_advised(error: BaseException) -> bool:
    """Whether the text says what to do. A value that breaks its rules is a fault: nothing is to be refused."""
    return isinstance(error, InvalidValue) or (isinstance(error, PipebenchError) and error.hint is not None)


def _ending(error: BaseException, slot: str) -> Ending:
    if isinstance(error, InvalidValue) and slot == "executors":
        return "unusable"  # of a trace, mostly: no device is missing
    kinds: tuple[tuple[type[BaseException], Ending], ...] = (
        (InfeasibleProblem, "infeasible"),
        (UnsupportedProblem, "unsupported"),
        (DeadlineReached, "deadline"),
        (PluginFailed, "crashed"),
        (PipebenchError, "refused"),
    )
    return next((ending for kind, ending in kinds if isinstance(error, kind)), "crashed")


def _text(error: BaseException) -> str:
    told = str(error) if isinstance(error, PipebenchError) else cause(error)
    return " ".join(told.encode(errors="replace").decode().split())
