"""The parent's side: run a component's code in a child process, and give or raise what came of it."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from pipebench.bench.cage.messages import HookCall, HookReply, OptionsRequest, Progress
from pipebench.bench.cage.work import CALL, CHECK, RESULT, RUNNING
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
)
from pipebench.bench.searches.isolation.conversation import ChildExit
from pipebench.domain.errors import (
    ExitCode,
    InfeasibleProblem,
    InvalidValue,
    PipebenchError,
    PluginFailed,
    UnsupportedProblem,
)
from pipebench.domain.value import Value
from pipebench.hooks.calls import UndeclaredCall
from pipebench.hooks.context import Context, DeadlineReached, LinkRequest, ProfileRequest
from pipebench.hooks.descriptors import Component, Executor, Profiler, slot_of
from pipebench.hooks.trust import UntrustedName

CALL_S, PROFILE_S = 300.0, 3600.0
"""Limits of a call whose context has no deadline: of any hook, and of a profiler, which may measure."""
CHECK_S = 20.0
LATE_S = 2.0
"""How long after the deadline of its context a call is ended."""
WARM_SLOTS = ("planners", "schedulers", "executors")
"""Slots whose components need the kernels that searches need."""


def caged(component: Component, owner: str) -> Callable[..., Any]:
    """A callable in place of the component's own: it takes the same arguments and runs in a child process.

    owner: the distribution of its plugin, whose compiled kernels it reads.
    """
    slot = slot_of(component)
    if slot == "artefacts":
        return lambda: CagedReproduction(component, owner)

    def work(*arguments: Any) -> Any:
        from pipebench.bench.cage.results import result_kind

        context = arguments[-1] if isinstance(arguments[-1], Context) else Context(options=arguments[-1])
        call = _call(slot, component, arguments[:-1], context)
        return _result(call, component, context, result_kind(slot, call.part).type, owner)

    return work


class CagedReproduction:
    """hooks.reproduction.Reproduction whose methods run in child processes, each in one of its own."""

    def __init__(self, component: Component, owner: str) -> None:
        self._component, self._owner = component, owner

    @property
    def claims(self) -> Any:
        """The paper's claims."""
        return self._method("claims")

    def suite(self, full: bool, profiles: Any = ()) -> Any:
        """What to run."""
        return self._method("suite", full, tuple(profiles))

    def judge(self, results: Any) -> Any:
        """One finding for each claim."""
        return self._method("judge", tuple(results))

    def series(self, results: Any) -> Any:
        """The plot."""
        return self._method("series", tuple(results))

    def _method(self, name: str, *arguments: Any) -> Any:
        from pipebench.bench.cage.results import METHODS

        component = self._component
        call = HookCall(
            slot="artefacts",
            name=component.name,
            part=name,
            arguments=msgspec.msgpack.encode(arguments),
        )
        return _result(call, component, Context(options=None), METHODS[name].type, self._owner)


def checked_options(slot: str, name: str, values: dict[str, Any]) -> dict[str, Any]:
    """The options as the component's own class holds them. Raises InvalidValue for what that class refuses."""
    given = msgspec.msgpack.encode(OptionsRequest(slot=slot, name=name, values=values))
    errand = Errand(
        work=CHECK, given=given, warm=False, environment=child_environment(), memory_bytes=SEARCH_MEMORY_BYTES
    )
    who = f"the options of {name!r}"
    reply = _reply(isolation().run(errand, CHECK_S), who, CHECK_S)
    if reply.ending != "returned":
        raise _error(reply, who)
    try:
        return msgspec.msgpack.decode(reply.value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PluginFailed(f"{who}: its process sent what cannot be read: {error}") from None


def _call(slot: str, component: Component, arguments: tuple[Any, ...], context: Context) -> HookCall:
    names = {"formats": ("data",), "profilers": ("graph",)}.get(slot, ("problem", "plan", "schedule"))
    kind, request = _request(context.request)
    return HookCall(
        slot=slot,
        name=component.name,
        part=_part(component),
        options=msgspec.to_builtins(context.options) if context.options is not None else {},
        **dict(zip(names, arguments, strict=False)),
        request_kind=kind,
        request=request,
        seed=context.seed,
        deadline_s=context.deadline_s,
        scheduler=context.scheduler,
        placements=context.placements,
        trusted=tuple(sorted(context.trusted)),
    )


def _part(component: Component) -> str:
    """Which callable of a descriptor stands in `load`."""
    parts = ("links", "devices") if isinstance(component, Profiler) else ()
    return next((part for part in parts if getattr(component, part) == component.load), "")


def _request(request: Any) -> Any:
    """Kind and encoding of the request; the path of a profiler's measurements is made absolute."""
    if isinstance(request, ProfileRequest):
        from dataclasses import replace

        if request.scratch:
            request = replace(request, scratch=os.path.abspath(request.scratch))
        return "profile", msgspec.msgpack.encode(request)
    if isinstance(request, LinkRequest):
        return "links", msgspec.msgpack.encode(request)
    return ("none", b"") if request is None else ("text", str(request).encode(errors="surrogateescape"))


def _result(call: HookCall, component: Component, context: Context, kind: Any, owner: str) -> Any:
    who = f"{call.slot.removesuffix('s')} {call.name!r}"
    limit_s = PROFILE_S if call.slot == "profilers" else CALL_S
    if call.deadline_s is not None:
        limit_s = max(0.0, call.deadline_s - time.monotonic()) + LATE_S

    def heard(message: bytes) -> None:
        if message[:1] == RUNNING:
            try:
                progress = msgspec.msgpack.decode(message[1:], type=Progress)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return
            context.report(progress.done, progress.message)

    ended = isolation().run(_errand(call, component, context), limit_s, owner=owner, heard=heard)
    show_output(ended.output)
    reply = _reply(ended, who, limit_s)
    context.notices += reply.notices
    for name, amount in reply.counters.items():
        context.count(name, amount)
    if reply.ending != "returned":
        raise _error(reply, who)
    if ended.left_behind:
        raise PluginFailed(f"{who} failed: {ended.left_behind}", "it has to wait for all that it starts")
    try:
        return msgspec.msgpack.decode(reply.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, PipebenchError, RecursionError) as error:
        raise PluginFailed(f"{who}: its process sent what cannot be read: {error}") from None


def _errand(call: HookCall, component: Component, context: Context) -> Errand:
    """A call and its surroundings: what it may see, write and take."""
    free = isinstance(component, Executor | Profiler) and component.network
    own_model = isinstance(context.request, ProfileRequest) and context.request.model
    named = isinstance(context.options, Value) and component.names_files(context.options)
    reads_files = bool(own_model or context.trusted or named)  # a model of the user's may be in a file
    return Errand(
        work=CALL,
        given=msgspec.msgpack.encode(call),
        warm=call.slot in WARM_SLOTS,
        folder=errand_folder() if reads_files else "",
        writable=_writable(component, context.request),
        environment=child_environment(component.variables if isinstance(component, Executor | Profiler) else ()),
        memory_bytes=0 if free else SEARCH_MEMORY_BYTES,
        network=free,
    )


def _writable(component: Component, request: Any) -> tuple[str, ...]:
    """Folders that the descriptor declares, and the one of a profiler's measurements."""
    declared = component.writes if isinstance(component, Executor | Profiler) else ()
    folders = [os.path.expandvars(os.path.expanduser(folder)) for folder in declared]
    if isinstance(request, ProfileRequest) and request.scratch:
        folders.append(os.path.dirname(os.path.abspath(request.scratch)))
    return tuple(folder for folder in folders if os.path.isabs(folder))


def _reply(ended: ChildExit, who: str, limit_s: float) -> HookReply:
    """The reply of a child. Raises PluginFailed where it did not live to send one."""
    try:
        sent = [message[1:] for message in ended.messages if message[:1] == RESULT]
        if sent:
            return msgspec.msgpack.decode(sent[-1], type=HookReply)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PluginFailed(f"{who}: its process sent what cannot be read: {error}") from None
    raise PluginFailed(f"{who} failed: {how_it_ended(ended, limit_s)}")


def how_it_ended(ended: ChildExit, limit_s: float) -> str:
    """Why a child sent no result, in a few words."""
    if ended.stopped:
        return f"no result within {limit_s:.3g} s"
    return ended.words if ended.lost or ended.flaw else f"{ended.words} before it returned"


def _error(reply: HookReply, who: str) -> Exception:
    match reply.ending:
        case "infeasible":
            return InfeasibleProblem(reply.text, reply.hint, reply.claimed_s)
        case "unsupported":
            return UnsupportedProblem(reply.text, reply.hint)
        case "deadline":
            return DeadlineReached(reply.text, reply.hint)
        case "invalid":
            return InvalidValue(reply.text, reply.hint)
        case "untrusted":
            return UntrustedName(reply.code, f"what is given to the {who}", reply.instead)
        case "refused":
            known = set(map(int, ExitCode)) - {int(ExitCode.OK), int(ExitCode.INTERNAL)}
            code = ExitCode(reply.exit_code) if reply.exit_code in known else ExitCode.SOME_FAILED
            return PipebenchError(reply.text, reply.hint, code)
        case "undeclared":
            return UndeclaredCall(reply.text)
        case "memory":
            return PluginFailed(f"{who} failed: {reply.text}", "give it more memory, or a smaller problem")
    return PluginFailed(f"{who} failed: {reply.text}")


def show_output(text: str) -> None:
    """What a component printed goes to stderr, without what a terminal would obey."""
    lines = ["".join(letter for letter in line if letter.isprintable()) for line in text.splitlines()]
    for line in filter(str.strip, lines):
        print(line, file=sys.stderr)
