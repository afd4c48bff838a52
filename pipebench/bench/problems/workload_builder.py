"""Workloads built from requests; what several of them share is loaded once."""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from msgspec import UNSET
from msgspec.structs import replace
from msgspec.structs import replace as replace_fields

from pipebench.algorithms.blocks.layer_profile import with_layers
from pipebench.bench.machine.time_limits import BUILD_S, time_limit
from pipebench.bench.problems.plugin_sources import build_graph, plugin_formats, profile_graph
from pipebench.bench.problems.workload import Workload, default_mini_batch
from pipebench.costs.shapes.context import refuse_context_ranks, with_context_devices
from pipebench.costs.shapes.experts import refuse_expert_ranks
from pipebench.costs.step import step_costs, with_tensor_memory
from pipebench.defaults import CLUSTER
from pipebench.documents.units import readable_bytes
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.framework import Framework, StepCosts
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Precision, Profile, Provenance
from pipebench.domain.recomputation import of_layers
from pipebench.domain.tuning import USUAL_REACH, Tuning
from pipebench.domain.value import Value, digest
from pipebench.domain.workload import WorkloadSpec, parts_of, problem_of, too_few_devices
from pipebench.formats.calibrations import read_calibration
from pipebench.formats.clusters import DEFAULT_DEVICE_TYPE, load_cluster
from pipebench.formats.devices import with_process_memory
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_facts, framework_family, load_framework
from pipebench.formats.profiles.files import read_profile
from pipebench.formats.profiles.shipped import load_profile, profile_names
from pipebench.hooks.context import ProfileRequest
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference


def with_file_setting(spec: WorkloadSpec, profile: Profile) -> tuple[WorkloadSpec, tuple[str, ...]]:
    """The workload with the file's memory and bandwidth (on the default cluster) and mini-batch filled in.

    The lines say what was taken from the file, and what its reader assumed. None for a profile without a setting.
    """
    setting = profile.provenance.setting
    if setting is UNSET:
        return spec, ()
    taken: dict[str, str | int] = {}
    said: list[str] = []
    if spec.cluster == CLUSTER:
        if spec.memory is None and setting.memory_bytes is not None:
            taken["memory"] = f"{setting.memory_bytes}B"
            said.append(f"memory {readable_bytes(setting.memory_bytes)}")
        if spec.bandwidth is None and setting.bandwidth_bytes_s is not None:
            taken["bandwidth"] = f"{setting.bandwidth_bytes_s}B/s"
            said.append(f"bandwidth {readable_bytes(round(setting.bandwidth_bytes_s))}/s")
    if spec.samples is None and setting.mini_batch is not None:
        taken["mini_batch"] = setting.mini_batch
        said.append(f"mini-batch {setting.mini_batch}")
    lines = [f"{profile.name}: {note}" for note in profile.provenance.lines]
    if taken:
        lines.append(f"{profile.name}: {', '.join(said)}, as its file says")
    return replace_fields(spec, **taken), tuple(lines)


def with_framework(
    spec: WorkloadSpec, precision: Precision, cluster: Cluster, tuning: Tuning | None = None
) -> tuple[WorkloadSpec, StepCosts | None]:
    """The workload with the framework's gradient precision where none is said, and the costs of its step.

    precision: of the weights. tuning: constants in place of the usual ones. Raises PipebenchError for a framework
    that is not known, or not the calibration's.
    """
    framework = tuned_framework(spec.framework, tuning)
    if spec.framework is None or framework is None:
        return spec, None
    facts = framework_facts(spec.framework)
    usual = "fp32" if precision == "fp32" else facts.gradient_precision
    gradients = spec.gradient_precision or usual
    reach = USUAL_REACH if tuning is None else tuning.reach
    step = step_costs(framework, cluster, gradients, spec.optimizer, reach)
    if tuning is not None:
        step = replace_fields(step, calibrated=tuning.spread)
    return replace_fields(spec, gradient_precision=gradients), step


def tuned_framework(name: str | None, tuning: Tuning | None) -> Framework | None:
    """The framework of that name with its calibrated constants, None for none.

    Raises PipebenchError for a framework that is not known, or not the calibration's.
    """
    if name is None:
        return None
    usual = load_framework(name)
    return usual if tuning is None else tuning.framework_of(usual)


def calibration_of(spec: WorkloadSpec) -> Tuning | None:
    """The constants of the calibration that the workload names. Raises PipebenchError for a file that cannot be
    read, and where no framework is named that they could belong to.
    """
    if spec.calibration is None:
        return None
    tuning = read_calibration(spec.calibration).tuning
    if spec.framework is None:
        raise PipebenchError(
            "a calibration goes with a training framework", f"give --framework {tuning.framework}, too"
        )
    return tuning


LARGEST_PROFILED = 128
"""Samples; more where a device's share of the mini-batch is larger, which plain data parallelism takes at once."""
DIGESTED = ("profile", "cluster")
"""The large parts of a problem, which are hashed once for all workloads that share them."""
T = TypeVar("T")


GATHERED = (
    "torchtitan keeps what it gathers in a pipeline, where its FSDP is --optimizer-sharding zero1, not zero3"
)


def _gathers_in_a_pipeline(spec: WorkloadSpec) -> bool:
    """Whether a plan may be priced as torchtitan's that it does not run."""
    return (
        spec.optimizer_sharding == "zero3"
        and spec.pp != 1
        and spec.framework is not None
        and framework_family(spec.framework) == TORCHTITAN
    )


def _stands_for(spec: WorkloadSpec) -> tuple[str, ...]:
    """A line on what a device of a plan is."""
    return (
        (f"{spec.cp} ranks share out each sequence: a device of a plan is {spec.cp} GPUs",) if spec.cp > 1 else ()
    )


class WorkloadBuilder:
    """Builds workloads; profiles, graphs and clusters are kept, so that a grid reads its profile once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[Hashable, object] = {}

    def workload(self, spec: WorkloadSpec, name: str = "", notes: tuple[str, ...] = ()) -> Workload:
        """The workload. name: its name in a suite. notes: what was assumed in reading the file of its model.

        Raises PipebenchError for names, files and numbers that are wrong or do not fit, and after BUILD_S.
        """
        with time_limit(BUILD_S, "reading and building the problem", "this limit is apart from --timeout"):
            return self._build(spec, name, notes)

    def _build(self, spec: WorkloadSpec, name: str, notes: tuple[str, ...]) -> Workload:
        if spec.model is not None:
            reference = parse_reference(spec.model)
            cluster = self._cluster(spec, DEFAULT_DEVICE_TYPE)
            tuning = calibration_of(spec)
            if tuning is not None:
                cluster = tuning.cluster_of(cluster)
            graph = self._graph_of_model(spec, reference, cluster)
            cluster, notes = with_context_devices(cluster, spec.cp), notes + _stands_for(spec)
            profile, label = self._profile_of_model(spec, reference, graph, cluster, tuning), str(reference)
            notes += () if profile.provenance.kernels is UNSET else (profile.provenance.kernels,)
        else:
            assert spec.profile is not None
            profile = self._profile(parse_reference(spec.profile))
            if spec.cp > 1:
                raise InvalidValue(
                    f"--cp {spec.cp}: profile {profile.name!r} is of whole sequences",
                    "leave --cp out, or give the model in place of its profile",
                )
            spec, notes = with_file_setting(spec, profile)
            if spec.precision not in (None, profile.precision):
                raise PipebenchError(
                    f"profile {profile.name!r} was made in {profile.precision}, not {spec.precision}",
                    "leave --precision out; it is for models",
                )
            cluster, label = self._cluster(spec, profile.device_types[0]), profile.name
            tuning = calibration_of(spec)
            if tuning is not None:
                cluster = tuning.cluster_of(cluster)
        if layers := of_layers(spec.recompute):
            made, whole_layers = ("layers", id(profile), layers), profile
            profile = self._once(made, lambda: (whole_layers, with_layers(whole_layers, layers)))[1]
        samples = default_mini_batch(profile, cluster) if spec.samples is None else spec.samples
        spec, step = with_framework(spec, profile.precision, cluster, tuning)
        if spec.framework is not None:
            whole = cluster if spec.memory else with_process_memory(cluster)
            cluster = with_tensor_memory(whole, load_framework(spec.framework))
            left = f"{readable_bytes(cluster.memory_bytes)} of {readable_bytes(whole.memory_bytes)}"
            notes = (*notes, f"{left} of a device are left to tensors under {spec.framework}")
            notes += (GATHERED,) if _gathers_in_a_pipeline(spec) else ()
        try:
            base = problem_of(spec, profile, cluster, samples, step)
            profile.require_work(dict.fromkeys(cluster.devices))
        except InvalidValue as error:
            raise InvalidValue(f"{label} on {cluster.name}: {error.message}", error.hint) from None
        if few := too_few_devices(base.pins, cluster.size):
            raise PipebenchError(few)
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

    def _graph_of_model(self, spec: WorkloadSpec, reference: Reference, cluster: Cluster) -> OperatorGraph:
        """The whole graph. Raises InvalidValue for numbers of ranks that cannot share it out on the cluster."""
        graph = self._once(("graph", str(reference)), lambda: build_graph(self._host, reference))
        said = {name: getattr(spec, name) for name in WorkloadSpec.__struct_fields__}
        pins = Pins(**parts_of(said)["pins"])
        refuse_expert_ranks(graph, spec.ep, cluster.size, pins, str(reference.name), spec.cp)
        refuse_context_ranks(graph, spec.cp, cluster, pins, str(reference.name))
        return graph

    def _profile_of_model(
        self,
        spec: WorkloadSpec,
        reference: Reference,
        graph: OperatorGraph,
        cluster: Cluster,
        tuning: Tuning | None,
    ) -> Profile:
        largest = spec.samples or 16 * cluster.size
        most = max(LARGEST_PROFILED, -(-largest // cluster.size))
        sizes = {2**power for power in range(min(largest, most).bit_length())}
        if spec.micro_batch is not None:
            sizes.add(spec.micro_batch)
            sizes.add(-(-spec.micro_batch // (spec.dp or 1)))
        precision = spec.precision or "fp32"
        request = ProfileRequest(
            devices=cluster.types,
            micro_batches=tuple(sorted(sizes)),
            precision=precision,
            framework=tuned_framework(spec.framework, tuning),
            links=() if spec.framework is None and spec.ep == spec.cp == 1 else cluster.rank_levels,
            reach=USUAL_REACH if tuning is None else tuning.reach,
            selective=spec.recompute == "selective",
            expert_parallel=spec.ep,
            context_parallel=spec.cp,
        )
        key = ("profiled", str(reference), spec.profiler, request)
        return self._once(key, lambda: profile_graph(self._host, spec.profiler, graph, request))

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
