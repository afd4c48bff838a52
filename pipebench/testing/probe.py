"""The child's side: make calls one after the other in one process, and send an answer to each."""

import signal
import time
from collections.abc import Callable
from typing import Any

import msgspec

from pipebench.bench.components import ready_planner
from pipebench.bench.returned import (
    exact_counters,
    exact_graph,
    exact_profile,
    exact_result,
    exact_schedule,
    exact_trace,
)
from pipebench.bench.searches.compilation import CompilationWatch
from pipebench.bench.services import HostServices
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, DeadlineReached, ProfileRequest
from pipebench.hooks.descriptors import Component, Planner
from pipebench.hooks.discovery import first_line
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference, typed_options
from pipebench.testing.artefact_flaws import artefact_flaws
from pipebench.testing.calls import Answer, Call, Ending
from pipebench.testing.observation import fresh_randomness, observed

WORK = "pipebench.testing.probe:make_calls"


def make_calls(host: Host, given: bytes, send: Callable[[bytes], None]) -> None:
    """Answer the calls in `given`, in order; a call beyond its `most_s` ends the process with SIGALRM."""
    fresh_randomness()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for call in msgspec.msgpack.decode(given, type=tuple[Call, ...]):
        signal.setitimer(signal.ITIMER_REAL, call.most_s)
        answer = _answer(host, call)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(msgspec.msgpack.encode(answer))


def _answer(host: Host, call: Call) -> Answer:
    try:
        component, options, work = _loaded(host, call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's import may raise anything
        return Answer(name=call.name, ending="crashed", reason=f"it cannot be loaded: {_text(error)}")
    undeclared: list[tuple[str, str]] = []
    services = HostServices(host, seed=call.seed, undeclared=undeclared)
    limit_s = None if call.limit_s is None else time.monotonic() + call.limit_s
    services.deadline_s = limit_s
    context = services.call_context(component, options)
    context.request = _request(call)
    ending: Ending = "returned"
    reason, returned = "", None
    with CompilationWatch() as compilation, observed(call.kill_worker) as seen:
        try:
            returned = work(*_arguments(call, context))
        except BaseException as error:  # a component may raise anything, SystemExit included
            ending, reason = _ending(error), _text(error)
    told: dict[str, Any] = {}
    if ending == "returned":
        try:
            told = _taken(services, component, call, returned)
        except PipebenchError as error:
            ending = _ending(error) if call.slot == "planners" else "crashed"
            reason = f"{call.slot.removesuffix('s')} {call.component}: {error}"
    try:
        told["counters"] = exact_counters(call.component, context.counters)
    except PipebenchError as error:
        told["counters_wrong"] = str(error)
    return Answer(
        name=call.name,
        ending=ending,
        reason=reason,
        wall_s=seen.wall_s,
        cpu_s=seen.cpu_s,
        compile_s=compilation.seconds,
        printed=seen.printed,
        left=seen.left + _spoilt(call),
        workers=seen.workers,
        undeclared=tuple(sorted({name for caller, name in undeclared if caller == component.name})),
        **told,
    )


def _loaded(host: Host, call: Call) -> tuple[Component, Value, Callable[..., Any]]:
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


def _taken(services: HostServices, component: Component, call: Call, returned: object) -> dict[str, Any]:
    """What was returned, by the fields of an answer. Raises PipebenchError for what is not of its type."""
    name = call.component
    match call.slot:
        case "planners":
            return _planned(services, component, call.problem, exact_result(name, returned))
        case "schedulers":
            return {"schedule": exact_schedule(name, returned)}
        case "executors":
            return {"trace": exact_trace(name, returned)}
        case "models":
            return {"graph": exact_graph(name, returned)}
        case "artefacts":
            return {"flaws": tuple(artefact_flaws(returned))}
    return {"profile": exact_profile(f"{call.slot.removesuffix('s')} {name!r}", returned)}


def _planned(
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
        raise PipebenchError(f"it names no scheduler for {problem.regime.mode} and returned no schedule")
    return {"result": bare, "schedule": services.schedule(name, problem, result.plan)}


def _spoilt(call: Call) -> tuple[str, ...]:
    """Whether the component changed what it was given: values are frozen, mappings inside them are not."""
    given = call.problem
    if given is None:
        return ()
    same = msgspec.msgpack.decode(msgspec.msgpack.encode(given), type=Problem).problem_id
    return () if same == given.problem_id else ("its problem was changed",)


def _ending(error: BaseException) -> Ending:
    kinds: tuple[tuple[type[BaseException], Ending], ...] = (
        (InfeasibleProblem, "infeasible"),
        (UnsupportedProblem, "unsupported"),
        (DeadlineReached, "deadline"),
        (PipebenchError, "refused"),
    )
    return next((ending for kind, ending in kinds if isinstance(error, kind)), "crashed")


def _text(error: BaseException) -> str:
    told = str(error) if isinstance(error, PipebenchError) else f"{type(error).__name__}: {first_line(error)}"
    return " ".join(told.encode(errors="replace").decode().split())
