"""From wanted workloads to workloads; what several of them share is loaded once."""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from msgspec.structs import replace

from pipebench.bench.problems.file_setting import with_file_setting
from pipebench.bench.problems.plugin_formats import plugin_formats
from pipebench.bench.problems.profiling import build_graph, profiled
from pipebench.bench.problems.wanted import Wanted
from pipebench.bench.problems.workload import Workload, default_mini_batch
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.problem import Pins
from pipebench.domain.profile import Profile, Provenance
from pipebench.domain.value import Value, digest
from pipebench.formats.cluster import DEFAULT_DEVICE_TYPE, load_cluster
from pipebench.formats.profile_file import read_profile
from pipebench.formats.profiles import load_profile, profile_names
from pipebench.hooks.context import ProfileRequest
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference

LARGEST_PROFILED = 128
"""Samples; more where a device's share of the mini-batch is larger, which plain data parallelism takes at once."""
T = TypeVar("T")


class WorkloadBuilder:
    """Builds workloads; profiles, graphs and clusters are kept, so that a grid reads its profile once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[Hashable, object] = {}

    def workload(self, wanted: Wanted) -> Workload:
        """The workload. Raises PipebenchError for names, files and numbers that are wrong or do not fit."""
        notices = wanted.notes
        if wanted.model is not None:
            cluster = self._cluster(wanted, DEFAULT_DEVICE_TYPE)
            profile, label = self._profile_of_model(wanted, wanted.model, cluster), str(wanted.model)
        else:
            assert wanted.profile is not None
            profile = self._profile(wanted.profile)
            wanted, notices = with_file_setting(wanted, profile)
            if wanted.precision not in (None, profile.precision):
                raise PipebenchError(
                    f"profile {profile.name!r} was made in {profile.precision}, not {wanted.precision}",
                    "leave --precision out; it is for models",
                )
            cluster, label = self._cluster(wanted, profile.device_types[0]), profile.name
        samples = wanted.samples
        workload = Workload(
            model=label,
            profile=profile,
            cluster=cluster,
            mini_batch=default_mini_batch(profile, cluster) if samples is None else samples,
            optimizer=wanted.optimizer,
            optimizer_sharding=wanted.optimizer_sharding,
            gradient_precision=wanted.gradient_precision,
            pins=Pins(
                tensor_parallel=wanted.tp,
                data_parallel=wanted.dp,
                pipeline=wanted.pp,
                virtual_stages=wanted.vpp,
                micro_batch=wanted.micro_batch,
                recompute=wanted.recompute,
                reserve=wanted.reserve,
            ),
            name=wanted.name,
            notices=notices,
        )
        _check(workload)
        return workload

    def identity(self, workload: Workload) -> Hashable:
        """Equal for workloads that are the same problem, whatever they are called."""
        figures, cluster = workload.profile, workload.cluster
        return (
            self._digest(figures, lambda: digest(replace(figures, provenance=Provenance()))),
            self._digest(cluster, lambda: digest(cluster)),
            workload.mini_batch,
            workload.optimizer,
            workload.optimizer_sharding,
            workload.gradient_precision,
            workload.pins,
        )

    def _profile(self, reference: Reference) -> Profile:
        def read() -> Profile:
            if reference.name in profile_names() and not reference.options:
                return load_profile(reference.name)
            known, others = profile_names(), plugin_formats(self._host)
            return read_profile(reference.name, reference.options, known=known, others=others)

        return self._once(("profile", str(reference)), read)

    def _profile_of_model(self, wanted: Wanted, reference: Reference, cluster: Cluster) -> Profile:
        largest = wanted.samples or 16 * cluster.size
        most = max(LARGEST_PROFILED, -(-largest // cluster.size))
        sizes = {2**power for power in range(min(largest, most).bit_length())}
        if wanted.micro_batch is not None:
            sizes.add(wanted.micro_batch)
            sizes.add(-(-wanted.micro_batch // (wanted.dp or 1)))
        graph = self._once(("graph", str(reference)), lambda: build_graph(self._host, reference))
        precision = wanted.precision or "fp32"
        request = ProfileRequest(devices=cluster.types, micro_batches=tuple(sorted(sizes)), precision=precision)
        key = ("profiled", str(reference), wanted.profiler, cluster.types, request.micro_batches, precision)
        return self._once(key, lambda: profiled(self._host, wanted.profiler, graph, request))

    def _cluster(self, wanted: Wanted, device_type: str) -> Cluster:
        def load() -> Cluster:
            cluster = load_cluster(
                wanted.cluster,
                devices=wanted.devices,
                memory=wanted.memory,
                bandwidth=wanted.bandwidth,
                device_type=device_type,
            )
            return cluster if wanted.link_mode is None else replace(cluster, link_mode=wanted.link_mode)

        rates = (wanted.memory, wanted.bandwidth, wanted.link_mode)
        return self._once(("cluster", wanted.cluster, wanted.devices, *rates, device_type), load)

    def _digest(self, value: Value, compute: Callable[[], str]) -> str:
        """By the object: `_kept` also holds the value, so that no other takes its id."""
        return self._once(("digest", id(value)), lambda: (value, compute()))[1]

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])


def _check(workload: Workload) -> None:
    """Build the problem, which holds every rule of its parts; the regime changes none of them."""
    try:
        workload.problem("sync")
    except InvalidValue as error:
        raise InvalidValue(f"{workload.model} on {workload.cluster.name}: {error.message}", error.hint) from None
