"""Models, profilers and file formats of plugins as the host uses them, with exact types."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec.structs import replace as replace_fields

from pipebench.bench.plugin_results import call_plugin, exact_cluster, exact_graph, exact_profile
from pipebench.defaults import MEASURING_PROFILER
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, PipebenchError, PluginFailed, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Profile
from pipebench.formats.devices import device_of_card
from pipebench.formats.profiles.format import ProfileFormat
from pipebench.hooks.context import Context, LinkRequest, ProfileRequest
from pipebench.hooks.descriptors import Format, Model, Profiler
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference, typed_options


def plugin_formats(host: Host) -> list[ProfileFormat]:
    """One reader for each suffix of each format; they are chosen by suffix, never by content."""
    components = [registered.component for registered in host.slot("formats").values()]
    return [
        ProfileFormat(
            name=component.name,
            summary=component.summary,
            suffix=suffix,
            options=component.options,
            recognises=_never,
            read=partial(_read, host, component),
        )
        for component in components
        if isinstance(component, Format)
        for suffix in component.suffixes
    ]


def _never(data: bytes) -> bool:
    del data
    return False


def _read(host: Host, component: Format, data: bytes, source: str, options: Any) -> Profile:
    work, context = host.load(component), Context(options=options, request=source)
    who = f"format {component.name!r}"
    return exact_profile(who, call_plugin(who, lambda: work(data, context)))


def build_graph(host: Host, reference: Reference) -> OperatorGraph:
    """The operator graph of a model with its parameters."""
    component = host.find("models", reference.name).component
    assert isinstance(component, Model)
    context = Context(options=typed_options(reference, component.options))
    build = host.load(component)
    with _named(f"model {reference}"):
        return exact_graph(component.name, call_plugin(f"model {component.name!r}", lambda: build(context)))


@contextmanager
def _named(who: str) -> Iterator[None]:
    """A value that breaks its own rules is told with the component that made it."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidValue(f"{who}: {error.message}", error.hint, error.field) from error


Report = Callable[[float, str], None]
"""Told how much is done, in [0, 1], and a message."""


def _silent(done: float, message: str) -> None:
    del done, message


def profile_of(
    host: Host, model: str, profiler: str, request: ProfileRequest, report: Report = _silent
) -> Profile:
    """The profile of a model of the host, or of one that the profiler captures itself.

    report: told of its progress.
    A profiler that captures takes its own model of the name where it cannot compute an operator of the host's.
    Raises PipebenchError for a name that neither of them knows.
    """
    reference = parse_reference(model)
    component = host.find("profilers", parse_reference(profiler).name).component
    assert isinstance(component, Profiler)
    own = replace(request, model=model)
    if component.captures and reference.name not in host.slot("models"):
        return profile_graph(host, profiler, None, own, report)
    graph = build_graph(host, reference)
    try:
        return profile_graph(host, profiler, graph, request, report)
    except UnsupportedProblem as error:
        if not component.captures or reference.options:
            raise
        try:
            return profile_graph(host, profiler, None, own, report)
        except PipebenchError:
            raise error from None


def known_devices(host: Host, profiler: str) -> tuple[str, ...]:
    """Device types that a profiler with these options needs no facts of, the first by default; else none.

    One that does not say measures this machine.
    """
    reference = parse_reference(profiler)
    component = host.find("profilers", reference.name).component
    assert isinstance(component, Profiler)
    if not component.devices:
        return ("cpu",)
    options = typed_options(reference, component.options)
    work, who = host.load(replace(component, load=component.devices)), f"profiler {component.name!r}"
    return tuple(map(str, call_plugin(who, lambda: work(options))))


def measured_links(host: Host, profiler: str, request: LinkRequest) -> Cluster:
    """The cluster that a profiler measures. Raises PipebenchError for one that measures no links."""
    reference = parse_reference(profiler)
    component = host.find("profilers", reference.name).component
    assert isinstance(component, Profiler)
    if not component.links:
        hint = f"name one that does, such as {MEASURING_PROFILER}"
        raise PipebenchError(f"profiler {component.name!r} measures no links", hint)
    context = Context(options=typed_options(reference, component.options), request=request)
    work, who = host.load(replace(component, load=component.links)), f"profiler {component.name!r}"
    return _of_table(exact_cluster(who, call_plugin(who, lambda: work(context))))


def profile_graph(
    host: Host, profiler: str, graph: OperatorGraph | None, request: ProfileRequest, report: Report = _silent
) -> Profile:
    """The profile of a graph by a profiler, options included. report: told of its progress.

    Cards are called as in the table of devices, so that clusters of that table take the profile.
    Raises PipebenchError for a profile without one of the devices, or with times that are all 0 on a device.
    """
    reference = parse_reference(profiler)
    component = host.find("profilers", reference.name).component
    assert isinstance(component, Profiler)
    context = Context(options=typed_options(reference, component.options), request=request, report=report)
    profile, who = host.load(component), f"profiler {component.name!r}"
    with _named(f"profiler {reference}"):
        made = exact_profile(who, call_plugin(who, lambda: profile(graph, context)))
        costs = tuple(replace_fields(each, device_type=device_of_card(each.device_type)) for each in made.costs)
        made = replace_fields(made, costs=costs)
        made.require_work(made.device_types)
    _require_devices(who, made, request)
    return made


CARD = "cuda"
"""A request for whatever card is there: the profile has the name of its type."""


def _require_devices(who: str, made: Profile, request: ProfileRequest) -> None:
    missing = [each.name for each in request.devices if each.name not in (CARD, *made.device_types)]
    if missing:
        raise PluginFailed(
            f"{who} returned costs of {', '.join(made.device_types)}, not of {', '.join(missing)} as it was asked",
            "a profile's device types are those of the request",
        )


def _of_table(cluster: Cluster) -> Cluster:
    """The cluster with its cards called as in the table of devices."""
    types = tuple(replace_fields(kind, name=device_of_card(kind.name)) for kind in cluster.types)
    return replace_fields(cluster, types=types, devices=tuple(map(device_of_card, cluster.devices)))
