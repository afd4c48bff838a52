"""The child's side: import plugins and describe them, check options, call a component's code."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from pipebench.bench.cage.messages import Ending, HookCall, HookReply, OptionsRequest, Progress
from pipebench.bench.searches.isolation.child import Channel
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.hooks.calls import UndeclaredCall
from pipebench.hooks.context import Context, DeadlineReached, LinkRequest, ProfileRequest
from pipebench.hooks.discovery import Provider, cause
from pipebench.hooks.installed.catalogue import make_catalogue
from pipebench.hooks.manager import Host
from pipebench.hooks.trust import UntrustedName

CATALOGUE, INVENTORY = f"{__name__}:send_catalogue", f"{__name__}:send_inventory"
CHECK, CALL, LOADS = f"{__name__}:check_options", f"{__name__}:answer_call", f"{__name__}:send_load_failures"
RUNNING, RESULT = b"R", b"="
"""The first byte of a message: who runs or how far it is; the result."""


def send_catalogue(host: Host, given: bytes, channel: Channel) -> None:
    """Import the plugins in `given`, and send the catalogue; before that, whose code runs."""
    del host
    _send_about_plugins(make_catalogue, given, channel)


def send_inventory(host: Host, given: bytes, channel: Channel) -> None:
    """As `send_catalogue`, with what each import costs and does."""
    from pipebench.hooks.installed.inventory import make_inventory

    del host
    _send_about_plugins(make_inventory, given, channel)


def _send_about_plugins(make: Callable[..., Any], given: bytes, channel: Channel) -> None:
    def announce(provider: Provider) -> None:
        channel.send(RUNNING + msgspec.msgpack.encode(provider))

    made = make(announce, msgspec.msgpack.decode(given, type=tuple[str, ...]))
    channel.send(RESULT + msgspec.msgpack.encode(made))


def send_load_failures(host: Host, given: bytes, channel: Channel) -> None:
    """Load the code of the components in `given`, and send which fail."""
    from pipebench.hooks.installed.inventory import load_failures

    failed = load_failures(host, msgspec.msgpack.decode(given, type=list[tuple[str, str]]))
    channel.send(RESULT + msgspec.msgpack.encode(failed))


def check_options(host: Host, given: bytes, channel: Channel) -> None:
    """The options as the component's class holds them, or what it says against them."""
    asked = msgspec.msgpack.decode(given, type=OptionsRequest)

    def work() -> bytes:
        options = host.find(asked.slot, asked.name).component.options
        return msgspec.msgpack.encode(_typed(options, asked.values))

    channel.send(RESULT + msgspec.msgpack.encode(_reply(work, [])))


def answer_call(host: Host, given: bytes, channel: Channel) -> None:
    """Call the component and send its reply."""
    from pipebench.bench.cage.results import PARTS, result_kind
    from pipebench.bench.plugin_results import call_plugin
    from pipebench.bench.services import HostServices

    call = msgspec.msgpack.decode(given, type=HookCall)
    services = HostServices(host, seed=call.seed, deadline_s=call.deadline_s, trusted=frozenset(call.trusted))
    contexts: list[Context] = []

    def work() -> bytes:
        component = host.find(call.slot, call.name).component
        options = _typed(component.options, call.options)
        context = services.call_context(component, options)
        contexts.append(context)
        context.request = _request(call)
        context.scheduler, context.placements = call.scheduler, call.placements
        context.report = lambda done, message: channel.send(
            RUNNING + msgspec.msgpack.encode(Progress(done=float(done), message=str(message)))
        )
        load = getattr(component, call.part) if call.part in PARTS else component.load
        loaded = host.load(replace(component, load=load))
        who = f"{call.slot.removesuffix('s')} {call.name!r}"
        returned = call_plugin(who, lambda: _call(call, loaded, options, context))
        kind = result_kind(call.slot, call.part)
        return msgspec.msgpack.encode(kind.exact(call.name, returned))

    channel.send(RESULT + msgspec.msgpack.encode(_reply(work, contexts)))


def _call(call: HookCall, loaded: Callable[..., Any], options: Any, context: Context) -> Any:
    match call.slot, call.part:
        case "planners", _:
            return loaded(call.problem, context)
        case "schedulers", _:
            return loaded(call.problem, call.plan, context)
        case "executors", _:
            return loaded(call.problem, call.plan, call.schedule, context)
        case ("models", _) | ("profilers", "links"):
            return loaded(context)
        case "formats", _:
            return loaded(call.data, context)
        case "profilers", "devices":
            return loaded(options)
        case "profilers", _:
            return loaded(call.graph, context)
    return _of_artefact(call, loaded())


def _of_artefact(call: HookCall, made: Any) -> Any:
    from pipebench.bench.cage.results import METHOD_ARGUMENTS
    from pipebench.domain.errors import PluginFailed

    if not hasattr(made, call.part):
        what = f"artefact {call.name!r} loads {type(made).__name__}, which has no {call.part!r}"
        raise PluginFailed(what, "hooks.reproduction.Reproduction says what an artefact loads")
    found = getattr(made, call.part)
    if call.part == "claims":
        return found
    return found(*msgspec.msgpack.decode(call.arguments, type=METHOD_ARGUMENTS[call.part]))


def _request(call: HookCall) -> Any:
    match call.request_kind:
        case "text":
            return call.request.decode(errors="surrogateescape")
        case "profile":
            return msgspec.msgpack.decode(call.request, type=ProfileRequest)
        case "links":
            return msgspec.msgpack.decode(call.request, type=LinkRequest)
    return None


def _typed(options: Any, values: dict[str, Any]) -> Any:
    """The options, as the component's class has them. Raises InvalidValue for what the class refuses."""
    try:
        return msgspec.convert(values, options)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error)) from None


def _reply(work: Callable[[], bytes], contexts: list[Context]) -> HookReply:
    from pipebench.bench.plugin_results import MOST_COUNTED, few_notices

    try:
        value = work()
    except BaseException as error:  # a stranger's code may raise anything
        if not isinstance(error, PipebenchError):
            traceback.print_exc()
        found = _failure(error)
    else:
        found = HookReply(ending="returned", value=value)
    for context in contexts:
        given = context.counters.items()
        counters = {str(name): int(amount) for name, amount in given if _is_number(amount, MOST_COUNTED)}
        found = msgspec.structs.replace(found, notices=few_notices(context.notices), counters=counters)
    return found


def _is_number(amount: object, most: int) -> bool:
    return isinstance(amount, int | float) and abs(amount) < most


ENDINGS: tuple[tuple[type[BaseException], Ending], ...] = (
    (InfeasibleProblem, "infeasible"),
    (UnsupportedProblem, "unsupported"),
    (DeadlineReached, "deadline"),
    (InvalidValue, "invalid"),
    (UntrustedName, "untrusted"),
    (PipebenchError, "refused"),
    (UndeclaredCall, "undeclared"),
    (MemoryError, "memory"),
)


def _failure(error: BaseException) -> HookReply:
    ending: Ending = next((name for kind, name in ENDINGS if isinstance(error, kind)), "failed")
    if not isinstance(error, PipebenchError):
        text = str(error) if ending == "undeclared" else cause(error)
        return HookReply(ending=ending, text=_line(text))
    if isinstance(error, UntrustedName):
        return HookReply(ending=ending, code=tuple(map(_line, error.code)), instead=_line(error.instead))
    claimed = error.claimed_s if isinstance(error, InfeasibleProblem) else None
    return HookReply(
        ending=ending,
        text=_line(error.message),
        hint=None if error.hint is None else _line(error.hint),
        exit_code=int(error.exit_code),
        claimed_s=float(claimed) if isinstance(claimed, int | float) else None,
    )


def _line(text: object) -> str:
    return str(text).encode(errors="replace").decode()
