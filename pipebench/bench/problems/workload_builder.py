"""From the workload that a user writes to the one that runs; what several share is loaded once."""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from msgspec.structs import replace

from pipebench.bench.problems.file_setting import with_file_setting
from pipebench.bench.problems.plugin_formats import plugin_formats
from pipebench.bench.problems.profiling import build_graph, profiled
from pipebench.bench.problems.workload import Workload, default_mini_batch
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Profile, Provenance
from pipebench.domain.value import Value, digest
from pipebench.domain.workload import WorkloadSpec, problem_of
from pipebench.formats.cluster import DEFAULT_DEVICE_TYPE, load_cluster
from pipebench.formats.profile_file import read_profile
from pipebench.formats.profiles import load_profile, profile_names
from pipebench.hooks.context import ProfileRequest
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference

LARGEST_PROFILED = 128
"""Samples; more where a device's share of the mini-batch is larger, which plain data parallelism takes at once."""
DIGESTED = ("profile", "cluster")
"""The large parts of a problem, which are hashed once for all workloads that share them."""
T = TypeVar("T")


class WorkloadBuilder:
    """Builds workloads; profiles, graphs and clusters are kept, so that a grid reads its profile once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[Hashable, object] = {}

    def workload(self, spec: WorkloadSpec, name: str = "", notes: tuple[str, ...] = ()) -> Workload:
        """The workload. name: its name in a suite. notes: what was assumed in reading the file of its model.

        Raises PipebenchError for names, files and numbers that are wrong or do not fit.
        """
        if spec.model is not None:
            reference = parse_reference(spec.model)
            cluster = self._cluster(spec, DEFAULT_DEVICE_TYPE)
            profile, label = self._profile_of_model(spec, reference, cluster), str(reference)
        else:
            assert spec.profile is not None
            profile = self._profile(parse_reference(spec.profile))
            spec, notes = with_file_setting(spec, profile)
            if spec.precision not in (None, profile.precision):
                raise PipebenchError(
                    f"profile {profile.name!r} was made in {profile.precision}, not {spec.precision}",
                    "leave --precision out; it is for models",
                )
            cluster, label = self._cluster(spec, profile.device_types[0]), profile.name
        samples = default_mini_batch(profile, cluster) if spec.samples is None else spec.samples
        try:
            base = problem_of(spec, profile, cluster, samples)
        except InvalidValue as error:
            raise InvalidValue(f"{label} on {cluster.name}: {error.message}", error.hint) from None
        return Workload(label, base, name, notes)

    def identity(self, workload: Workload) -> Hashable:
        """Equal for workloads that are the same problem, whatever they are called."""
        figures, cluster = workload.profile, workload.cluster
        return (
            self._digest(figures, lambda: digest(replace(figures, provenance=Provenance()))),
            self._digest(cluster, lambda: digest(cluster)),
            *(getattr(workload.base, name) for name in Problem.__struct_fields__ if name not in DIGESTED),
        )

    def _profile(self, reference: Reference) -> Profile:
        def read() -> Profile:
            if reference.name in profile_names() and not reference.options:
                return load_profile(reference.name)
            known, others = profile_names(), plugin_formats(self._host)
            return read_profile(reference.name, reference.options, known=known, others=others)

        return self._once(("profile", str(reference)), read)

    def _profile_of_model(self, spec: WorkloadSpec, reference: Reference, cluster: Cluster) -> Profile:
        largest = spec.samples or 16 * cluster.size
        most = max(LARGEST_PROFILED, -(-largest // cluster.size))
        sizes = {2**power for power in range(min(largest, most).bit_length())}
        if spec.micro_batch is not None:
            sizes.add(spec.micro_batch)
            sizes.add(-(-spec.micro_batch // (spec.dp or 1)))
        graph = self._once(("graph", str(reference)), lambda: build_graph(self._host, reference))
        precision = spec.precision or "fp32"
        request = ProfileRequest(devices=cluster.types, micro_batches=tuple(sorted(sizes)), precision=precision)
        key = ("profiled", str(reference), spec.profiler, cluster.types, request.micro_batches, precision)
        return self._once(key, lambda: profiled(self._host, spec.profiler, graph, request))

    def _cluster(self, spec: WorkloadSpec, device_type: str) -> Cluster:
        def load() -> Cluster:
            cluster = load_cluster(
                spec.cluster,
                devices=spec.devices,
                memory=spec.memory,
                bandwidth=spec.bandwidth,
                device_type=device_type,
            )
            return cluster if spec.link_mode is None else replace(cluster, link_mode=spec.link_mode)

        rates = (spec.memory, spec.bandwidth, spec.link_mode)
        return self._once(("cluster", spec.cluster, spec.devices, *rates, device_type), load)

    def _digest(self, value: Value, compute: Callable[[], str]) -> str:
        """By the object: `_kept` also holds the value, so that no other takes its id."""
        return self._once(("digest", id(value)), lambda: (value, compute()))[1]

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])
