"""From what the user asked for (models, profiles, a suite, a cluster) to workloads."""

from dataclasses import dataclass
from typing import cast

from msgspec.structs import replace

from pipebench.bench.plugin_formats import plugin_formats
from pipebench.bench.returned import called, exact_graph, exact_profile
from pipebench.bench.suites import load_suite, suite_workloads
from pipebench.bench.workload import Workload, default_mini_batch
from pipebench.domain.cluster import Cluster, LinkMode
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Optimizer, Pins
from pipebench.domain.profile import Profile
from pipebench.formats.cluster import DEFAULT_DEVICE_TYPE, load_cluster
from pipebench.formats.profile_file import read_profile
from pipebench.formats.profiles import load_profile, profile_names
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.descriptors import Model, Profiler
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference, parse_references, typed_options

DEFAULT_DEVICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the user asked for; None and empty: not said."""

    models: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    suite: str | None = None
    cluster: str | None = None
    devices: int | None = None
    memory: str | None = None
    bandwidth: str | None = None
    link_mode: str | None = None
    mini_batch: int | None = None
    micro_batch: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    reserve: float | None = None
    optimizer: str | None = None
    profiler: str = "analytic"


def select(host: Host, asked: Selection) -> list[Workload]:
    """The workloads, suite first, then profiles, then models. Nothing named: the quick suite.

    Raises PipebenchError for whatever is wrong with any of them, so that nothing runs before all are right.
    """
    workloads: list[Workload] = []
    if asked.suite is not None or not (asked.models or asked.profiles):
        workloads += [_overridden(w, asked) for w in suite_workloads(load_suite(asked.suite or "quick"))]
    for reference in parse_references(asked.profiles):
        workloads.append(_of_profile(asked, _read(host, reference)))
    for reference in parse_references(asked.models):
        workloads.append(_of_model(host, asked, reference))
    for workload in workloads:
        _check(workload)
    return workloads


def _check(workload: Workload) -> None:
    """Build the problem, which holds every rule of its parts; the regime changes none of them."""
    try:
        workload.problem("sync")
    except InvalidValue as error:
        raise InvalidValue(f"{workload.model} on {workload.cluster.name}: {error.message}", error.hint) from None


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


def _read(host: Host, reference: Reference) -> Profile:
    if reference.name in profile_names() and not reference.options:
        return load_profile(reference.name)
    return read_profile(reference.name, reference.options, known=profile_names(), others=plugin_formats(host))


def _of_profile(asked: Selection, profile: Profile) -> Workload:
    cluster = _cluster(asked, profile.device_types)
    return _workload(asked, profile.name, profile, cluster)


def _of_model(host: Host, asked: Selection, reference: Reference) -> Workload:
    graph = build_graph(host, reference)
    cluster = _cluster(asked, (DEFAULT_DEVICE_TYPE,))
    largest = asked.mini_batch or 16 * cluster.size
    sizes = {2**power for power in range(min(largest, 128).bit_length())}
    request = ProfileRequest(
        devices=cluster.types,
        micro_batches=tuple(sorted(sizes | ({asked.micro_batch} if asked.micro_batch else set()))),
    )
    profile = profiled(host, asked.profiler, graph, request)
    return _workload(asked, str(reference), profile, cluster)


def _cluster(asked: Selection, device_types: tuple[str, ...]) -> Cluster:
    cluster = load_cluster(
        asked.cluster or "flat",
        devices=asked.devices if asked.devices is not None else DEFAULT_DEVICES,
        memory=asked.memory,
        bandwidth=asked.bandwidth,
        device_type=device_types[0],
    )
    if asked.link_mode is not None:
        cluster = replace(cluster, link_mode=cast(LinkMode, asked.link_mode))
    return cluster


def _workload(asked: Selection, model: str, profile: Profile, cluster: Cluster) -> Workload:
    return Workload(
        model=model,
        profile=profile,
        cluster=cluster,
        mini_batch=asked.mini_batch if asked.mini_batch is not None else default_mini_batch(profile, cluster),
        optimizer=cast(Optimizer, asked.optimizer or "none"),
        pins=_pins(asked),
    )


def _pins(asked: Selection) -> Pins:
    return Pins(
        tensor_parallel=asked.tp,
        data_parallel=asked.dp,
        pipeline=asked.pp,
        micro_batch=asked.micro_batch,
        reserve=asked.reserve or 0.0,
    )


def _overridden(workload: Workload, asked: Selection) -> Workload:
    """A suite's workload; what the user says besides wins over what the suite says."""
    changed = any((asked.cluster, asked.devices, asked.memory, asked.bandwidth, asked.link_mode))
    if changed and not (asked.cluster and asked.devices):
        raise PipebenchError(
            "a suite brings its own clusters", "give --cluster and --devices together, or name --profile instead"
        )
    cluster = _cluster(asked, workload.profile.device_types) if changed else workload.cluster
    return Workload(
        model=workload.model,
        profile=workload.profile,
        cluster=cluster,
        mini_batch=asked.mini_batch or workload.mini_batch,
        optimizer=cast(Optimizer, asked.optimizer) if asked.optimizer else workload.optimizer,
        pins=_pins(asked) if _pins(asked) != Pins() else workload.pins,
    )
