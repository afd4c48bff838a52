"""Models built and profiled by plugins, what they return brought to exact types."""

from dataclasses import replace

from pipebench.bench.returned import called, exact_cluster, exact_graph, exact_profile
from pipebench.defaults import MEASURING_PROFILER
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Profile
from pipebench.hooks.context import Context, LinkRequest, ProfileRequest
from pipebench.hooks.descriptors import Model, Profiler
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference, typed_options


def build_graph(host: Host, reference: Reference) -> OperatorGraph:
    """The operator graph of a model with its parameters."""
    component = host.find("models", reference.name).component
    assert isinstance(component, Model)
    context = Context(options=typed_options(reference, component.options))
    build = host.load(component)
    return exact_graph(component.name, called(f"model {component.name!r}", lambda: build(context)))


def profile_of(host: Host, model: str, profiler: str, request: ProfileRequest) -> Profile:
    """The profile of a model of the host, or of one that the profiler captures itself.

    A profiler that captures takes its own model of the name where it cannot compute an operator of the host's.
    Raises PipebenchError for a name that neither of them knows.
    """
    reference = parse_reference(model)
    component = host.find("profilers", parse_reference(profiler).name).component
    assert isinstance(component, Profiler)
    own = replace(request, model=model)
    if component.captures and reference.name not in host.slot("models"):
        return profiled(host, profiler, None, own)
    graph = build_graph(host, reference)
    try:
        return profiled(host, profiler, graph, request)
    except UnsupportedProblem as error:
        if not component.captures or reference.options:
            raise
        try:
            return profiled(host, profiler, None, own)
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
    return tuple(map(str, called(who, lambda: work(options))))


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
    return exact_cluster(who, called(who, lambda: work(context)))


def profiled(host: Host, profiler: str, graph: OperatorGraph | None, request: ProfileRequest) -> Profile:
    """The profile of a graph by a profiler, options included."""
    reference = parse_reference(profiler)
    component = host.find("profilers", reference.name).component
    assert isinstance(component, Profiler)
    context = Context(options=typed_options(reference, component.options), request=request)
    profile, who = host.load(component), f"profiler {component.name!r}"
    return exact_profile(who, called(who, lambda: profile(graph, context)))
