"""Models built and profiled by plugins, what they return brought to exact types."""

from pipebench.bench.returned import called, exact_graph, exact_profile
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Profile
from pipebench.hooks.context import Context, ProfileRequest
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


def profiled(host: Host, profiler: str, graph: OperatorGraph, request: ProfileRequest) -> Profile:
    """The profile of a graph by a profiler, options included."""
    reference = parse_reference(profiler)
    component = host.find("profilers", reference.name).component
    assert isinstance(component, Profiler)
    context = Context(options=typed_options(reference, component.options), request=request)
    profile, who = host.load(component), f"profiler {component.name!r}"
    return exact_profile(who, called(who, lambda: profile(graph, context)))
