"""WorkloadSpec: the one declaration of a workload's fields, each with its type and its text.

The options of the command line, the keys of a suite, the keywords of the API and the cells of an artefact come
from it. A new field is one line in WorkloadSpec and one in WorkloadKeywords, both in this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from pipebench.defaults import CLUSTER, PROFILER
from pipebench.domain.cluster import Cluster, LinkMode
from pipebench.domain.framework import StepCosts
from pipebench.domain.limits import MOST_COUNT, MOST_DEVICES
from pipebench.domain.problem import Optimizer, OptimizerSharding, Pins, Problem, Regime
from pipebench.domain.profile import Precision, Profile
from pipebench.domain.recomputation import RecomputePin
from pipebench.domain.value import Value, require

DEFAULT_DEVICES = 8
"""Devices where the command line and the API say none."""
WHAT, WHERE, PINNED = "What to plan", "Where (devices and links)", "Pinned (what every plan must have)"
"""Headings of the fields, under which the help of a command lists their options."""
SOURCES = ("model", "profile")
"""A workload has one of these two. The command line and the API take many of each, for as many workloads."""

Count = Annotated[int, Meta(ge=1, le=MOST_COUNT)]
Devices = Annotated[int, Meta(ge=1, le=MOST_DEVICES)]
Memory = Annotated[str, Meta(examples=["12GB", "16GiB"])]
Bandwidth = Annotated[str, Meta(examples=["12GB/s"])]
Reserve = Annotated[float, Meta(ge=0, lt=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Field:
    """The declaration of a field. `name`, `type` and `default` are read off the annotation.

    text: a sentence without its full stop.
    fallback: what holds where the command line does not set the field.
    short: a second spelling of the option.
    unit: what a text measures.
    axis: whether a suite may give a list of values, which makes a workload for each.
    lands: the part of the problem that takes the value unchanged.
    group: the heading of the field.
    """

    text: str
    fallback: str = ""
    short: str = ""
    unit: Literal["", "bytes", "bytes/s"] = ""
    axis: bool = False
    lands: str = ""
    group: str = WHAT
    name: str = ""
    type: Any = None
    default: Any = msgspec.NODEFAULT

    @property
    def help(self) -> str:
        """The text of the option."""
        return f"{self.text} (default: {self.fallback})." if self.fallback else f"{self.text}."

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The smallest and the largest number that it can be, None where there is none or it is another one."""
        notes = (note for note in get_args(without_none(self.type))[1:] if isinstance(note, Meta))
        return next(((note.ge, note.le) for note in notes), (None, None))

    @property
    def kind(self) -> type:
        """int, float or str."""
        found: type = str if self.choices else _plain_type(self.type)
        return found

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it can have, empty where they cannot be listed."""
        plain = _plain_type(self.type)
        return get_args(plain) if get_origin(plain) is Literal else ()


class WorkloadSpec(Value, frozen=True, kw_only=True):
    """A model or a profile on a cluster, with the regime's terms and the pins; nothing is loaded yet.

    Without a mini-batch: the profiled size, or 16 samples a device where several sizes are profiled.
    """

    model: Annotated[str | None, Field("A model, name[option=value,…], profiled for the cluster's devices")] = None
    profile: Annotated[str | None, Field("A profile: the name of one that ships, or a file")] = None
    profiler: Annotated[str, Field("Profiler of a model, name[option=value,…]", f"{PROFILER}, or the suite's")] = (
        PROFILER
    )
    cluster: Annotated[
        str, Field("A cluster, by name or TOML file", f"{CLUSTER}, or the suite's", group=WHERE)
    ] = CLUSTER
    devices: Annotated[
        Devices,
        Field("Number of devices", "8, or the suite's or cluster file's", short="-n", axis=True, group=WHERE),
    ]
    memory: Annotated[
        Memory | None,
        Field("Memory of each device, such as 12GB or 16GiB", unit="bytes", axis=True, group=WHERE),
    ] = None
    bandwidth: Annotated[
        Bandwidth | None,
        Field("One-way link bandwidth of each device, such as 12GB/s", unit="bytes/s", axis=True, group=WHERE),
    ] = None
    link_mode: Annotated[LinkMode | None, Field("How links are shared", "the cluster's", group=WHERE)] = None
    mini_batch: Annotated[Count | None, Field("Samples for one weight update", axis=True)] = None
    mini_batch_per_device: Annotated[
        Count | None, Field("In place of the mini-batch: samples for one weight update, times devices", axis=True)
    ] = None
    micro_batch: Annotated[
        Count | None,
        Field(
            "Pin the micro-batch: samples through a stage, all replicas",
            axis=True,
            lands="pins.micro_batch",
            group=PINNED,
        ),
    ] = None
    micro_batch_size: Annotated[
        Count | None,
        Field(
            "Pin the micro-batch as frameworks count it: samples of one replica",
            axis=True,
            lands="pins.micro_batch_size",
            group=PINNED,
        ),
    ] = None
    tp: Annotated[
        Count | None, Field("Pin the tensor-parallel degree", lands="pins.tensor_parallel", group=PINNED)
    ] = None
    dp: Annotated[
        Count | None, Field("Pin the data-parallel degree", lands="pins.data_parallel", group=PINNED)
    ] = None
    pp: Annotated[
        Count | None,
        Field(
            "Pin the pipeline degree: stages; with --vpp, devices in a row", lands="pins.pipeline", group=PINNED
        ),
    ] = None
    vpp: Annotated[
        Count | None,
        Field(
            "Pin the number of stages on each device (virtual stages)",
            lands="pins.virtual_stages",
            group=PINNED,
        ),
    ] = None
    ep: Annotated[
        Count,
        Field(
            "Expert parallelism: ranks of a stage, tensor-parallel ones among them, that share out the experts",
            "1, each tensor-parallel group holds them all",
            axis=True,
            lands="regime.expert_parallel",
            group=PINNED,
        ),
    ] = 1
    cp: Annotated[
        Count,
        Field(
            "Context parallelism: ranks that share out the sequence of each sample; a device of a plan is so many",
            "1, each rank has whole sequences",
            axis=True,
            lands="regime.context_parallel",
            group=PINNED,
        ),
    ] = 1
    recompute: Annotated[
        RecomputePin | None,
        Field(
            "Pin recomputation: of whole stages, of each layer (full), or of its attention (selective)",
            lands="pins.recompute",
            group=PINNED,
        ),
    ] = None
    precision: Annotated[
        Precision | None, Field("Precision of a model's weights", "fp32; that of the file with --config")
    ] = None
    gradient_precision: Annotated[
        Precision | None,
        Field("Precision of gradients", "the weights'; fp32 with --config", lands="regime.gradient_precision"),
    ] = None
    reserve: Annotated[
        Reserve,
        Field("Share of device memory to keep free, such as 0.1", lands="pins.reserve", group=WHERE),
    ] = 0.0
    overlap: Annotated[
        Share,
        Field(
            "Share of the shorter of a forward and a backward run at once that is hidden", lands="problem.overlap"
        ),
    ] = 0.0
    optimizer: Annotated[
        Optimizer,
        Field("Optimizer state held beside the weights", "none; adam with --config", lands="regime.optimizer"),
    ] = "none"
    optimizer_sharding: Annotated[
        OptimizerSharding,
        Field(
            "What replicas share out: the optimizer state (zero1), or weights and gradients too (zero3)",
            lands="regime.optimizer_sharding",
        ),
    ] = "none"
    sharding_ranks: Annotated[
        Count | None,
        Field(
            "Ranks that share that out among each other, such as 8; each group of so many holds a copy (HSDP)",
            "all ranks with the same weights",
            lands="regime.sharding_ranks",
        ),
    ] = None
    framework: Annotated[
        str | None,
        Field(
            "Price the step of a training framework, as `pipebench list frameworks` names it: kernels, launches, "
            "optimizer and overlap"
        ),
    ] = None
    calibration: Annotated[
        str | None, Field("With a framework: constants that `calibrate` fitted to measured runs, a TOML file")
    ] = None

    def __post_init__(self) -> None:
        require((self.model is None) != (self.profile is None), "a workload has a model or a profile, one of them")
        require(
            self.mini_batch is None or self.mini_batch_per_device is None,
            "give mini_batch or mini_batch_per_device, not both",
        )

    @property
    def samples(self) -> int | None:
        """The mini-batch that is said, None where it is not."""
        if self.mini_batch_per_device is not None:
            return self.mini_batch_per_device * self.devices
        return self.mini_batch

    def plain(self, **changes: Any) -> "WorkloadSpec":
        """The workload alone, without what a subclass adds to it, and with these fields changed."""
        values = {name: getattr(self, name) for name in WorkloadSpec.__struct_fields__}
        return WorkloadSpec(**(values | changes))


class WorkloadKeywords(TypedDict, total=False):
    """The fields of WorkloadSpec, but for `model` and `profile`, as keywords of the API. None: not said."""

    profiler: str | None
    cluster: str | None
    devices: int | None
    memory: str | None
    bandwidth: str | None
    link_mode: LinkMode | None
    mini_batch: int | None
    mini_batch_per_device: int | None
    micro_batch: int | None
    micro_batch_size: int | None
    tp: int | None
    dp: int | None
    pp: int | None
    vpp: int | None
    ep: int | None
    cp: int | None
    recompute: RecomputePin | None
    precision: Precision | None
    gradient_precision: Precision | None
    reserve: float | None
    overlap: float | None
    optimizer: Optimizer | None
    optimizer_sharding: OptimizerSharding | None
    sharding_ranks: int | None
    framework: str | None
    calibration: str | None


@cache
def workload_fields() -> Mapping[str, Field]:
    """The declared fields by name, in their order."""
    found: dict[str, Field] = {}
    for info in msgspec.structs.fields(WorkloadSpec):
        base, *notes = get_args(info.type)
        (declared,) = (note for note in notes if isinstance(note, Field))
        limits = tuple(note for note in notes if not isinstance(note, Field))
        kind = Annotated[base, *limits] if limits else base
        found[info.name] = replace(declared, name=info.name, type=kind, default=info.default)
    return found


def keyword_fields() -> Mapping[str, Field]:
    """The fields that hold for every workload of a command or call: all but the sources."""
    return {name: field for name, field in workload_fields().items() if name not in SOURCES}


@cache
def pin_flag(pin: str) -> str:
    """The option that sets a field of Pins, such as `--tp` of tensor_parallel."""
    return next(field.flag for field in workload_fields().values() if field.lands == f"pins.{pin}")


def typed_pins(pins: Pins, *names: str) -> str:
    """The options that set these fields of Pins, those that are pinned: `--tp 4, --pp 8`; '' where none is."""
    return ", ".join(f"{pin_flag(name)} {value}" for name in names if (value := getattr(pins, name)))


def too_few_devices(pins: Pins, size: int) -> str:
    """That the degrees pinned for a stage ask for more devices than there are; '' where they do not."""
    if (pins.tensor_parallel or 1) * (pins.data_parallel or 1) <= size:
        return ""
    degrees = {name: getattr(pins, name) for name in ("tensor_parallel", "data_parallel", "pipeline")}
    pinned = {pin_flag(name): degree for name, degree in degrees.items() if degree is not None}
    said = " x ".join(f"{flag} {degree}" for flag, degree in pinned.items())
    return f"{said} = {prod(pinned.values())} devices, there are {size}"


def parts_of(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values of a workload by the part of the problem in which they land: pins, regime and the problem itself."""
    parts: dict[str, dict[str, Any]] = {"pins": {}, "regime": {}, "problem": {}}
    for name, value in values.items():
        if lands := workload_fields()[name].lands:
            part, _, field = lands.partition(".")
            parts[part][field] = value
    return parts


def problem_of(
    spec: WorkloadSpec, profile: Profile, cluster: Cluster, mini_batch: int, step: StepCosts | None = None
) -> Problem:
    """The synchronous problem of a workload, once its profile and cluster are loaded.

    step: of the framework that the workload names.
    Raises InvalidValue for numbers that do not fit together.
    """
    parts = parts_of({name: getattr(spec, name) for name in WorkloadSpec.__struct_fields__})
    said = {name: value for name, value in parts["regime"].items() if value is not None}
    return Problem(
        profile=profile,
        cluster=cluster,
        mini_batch=mini_batch,
        regime=Regime(mode="sync", precision=profile.precision, step=step, **said),
        pins=Pins(**parts["pins"]),
        **parts["problem"],
    )


def without_none(kind: Any) -> Any:
    """A type without `| None`; its limits stay."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    return kind


def _plain_type(kind: Any) -> Any:
    """The type without None and limits: int, float, str or a Literal."""
    kind = without_none(kind)
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
