"""What a suite file may say, as typed records."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta

from pipebench.defaults import CLUSTER, PROFILER
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.problem import Optimizer, OptimizerSharding, Recompute, RegimeMode
from pipebench.domain.profile import Precision
from pipebench.domain.value import MOST_COUNT, MOST_SECONDS, Value, require, require_name, require_unique
from pipebench.formats.cluster import MOST_DEVICES
from pipebench.formats.quantities import parse_bandwidth, parse_bytes
from pipebench.hooks.syntax import Reference, parse_reference, split_list

T = TypeVar("T")
Axis: TypeAlias = T | Annotated[tuple[T, ...], Meta(min_length=1)]
"""One value, or a list of them: a workload for each."""

Count = Annotated[int, Meta(ge=1, le=MOST_COUNT)]
Devices = Annotated[int, Meta(ge=1, le=MOST_DEVICES)]
Memory = Annotated[str, Meta(examples=["12GB", "16GiB"])]
Bandwidth = Annotated[str, Meta(examples=["12GB/s"])]
Reserve = Annotated[float, Meta(ge=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0, le=MOST_SECONDS)]
Seed = Annotated[int, Meta(ge=0, le=MOST_COUNT)]

AXES = ("devices", "memory", "bandwidth", "mini_batch", "mini_batch_per_device", "micro_batch")
"""The keys of a workload that may be lists, in the order in which their cross product runs (the last fastest)."""


class SuiteWorkload(Value, frozen=True, kw_only=True):
    """One model or profile on one cluster; keys that hold a list make a workload for each of their values.

    model: `name[option=value,…]`, profiled by `profiler` for the cluster's devices. profile: one that ships, or
    a file. Files are relative to the suite file. name: of the workload, left out: that of the model or profile.
    cluster: by name or file. memory: of each device; bandwidth: one way, of each device on every link level;
    link_mode: left out, the cluster's. mini_batch: samples for one weight update; mini_batch_per_device: times the
    devices; both left out: the
    profiled size, 16 for each device where there are several. micro_batch, tp, dp, pp: pinned micro-batch
    size and tensor-parallel, data-parallel and pipeline degree; vpp: stages a device, recompute: pinned too.
    reserve: share of device memory to keep free. precision: of a model, fp32 where left out.
    """

    name: str | None = None
    model: str | None = None
    profile: str | None = None
    profiler: str = PROFILER
    cluster: str = CLUSTER
    devices: Axis[Devices]
    memory: Axis[Memory] | None = None
    bandwidth: Axis[Bandwidth] | None = None
    link_mode: LinkMode | None = None
    mini_batch: Axis[Count] | None = None
    mini_batch_per_device: Axis[Count] | None = None
    micro_batch: Axis[Count] | None = None
    tp: Count | None = None
    dp: Count | None = None
    pp: Count | None = None
    vpp: Count | None = None
    recompute: Recompute | None = None
    reserve: Reserve = 0.0
    precision: Precision | None = None
    gradient_precision: Precision | None = None
    optimizer: Optimizer = "none"
    optimizer_sharding: OptimizerSharding = "none"

    def __post_init__(self) -> None:
        if self.name is not None:
            require_name("a workload", self.name)
        require((self.model is None) != (self.profile is None), "a workload has a model or a profile, one of them")
        require(
            self.mini_batch is None or self.mini_batch_per_device is None,
            "give mini_batch or mini_batch_per_device, not both",
        )
        for key in ("model", "profile", "profiler"):
            text = getattr(self, key)
            if text is not None:
                _readable(key, text, parse_reference)
                require(text.strip() != "", f"{key} is empty")
        for text in values(self.memory):
            _readable("memory", text, parse_bytes)
        for text in values(self.bandwidth):
            _readable("bandwidth", text, parse_bandwidth)


class Limits(Value, frozen=True, kw_only=True):
    """Of one trial. timeout_s: of its whole search. memory: of the planner's process. repeat: warm searches."""

    timeout_s: Seconds | None = None
    memory: Memory | None = None
    repeat: Count | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            _readable("memory", self.memory, parse_bytes)


class Suite(Value, frozen=True, kw_only=True):
    """A named list of workloads, and what a comparison runs on them where the command line does not say it.

    planners, schedulers, executors: as on the command line; Python files are relative to the suite file. regimes:
    every planner is scored in each of them; empty: each planner in its own.
    """

    name: str
    summary: str
    workloads: Annotated[tuple[SuiteWorkload, ...], Meta(min_length=1)]
    planners: tuple[str, ...] = ()
    regimes: tuple[RegimeMode, ...] = ()
    schedulers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    limits: Limits = Limits()
    seed: Seed | None = None

    def __post_init__(self) -> None:
        require_name("a suite", self.name)
        for key in ("planners", "schedulers", "executors"):
            for text in getattr(self, key):
                _readable(key, text, _parse_all)
        for key in ("planners", "regimes", "schedulers", "executors"):
            require_unique(f"{key}:", getattr(self, key))
        first: dict[str, int] = {}
        for position, workload in enumerate(self.workloads):
            if workload.name is not None:
                other = first.setdefault(workload.name, position)
                require(
                    other == position,
                    f"workloads[{other}] and workloads[{position}] are both named {workload.name!r}",
                )


def values(axis: T | tuple[T, ...] | None) -> tuple[T, ...]:
    """The values of one key, none where it is left out."""
    if axis is None:
        return ()
    return axis if isinstance(axis, tuple) else (axis,)


def _parse_all(texts: str) -> list[Reference]:
    return [parse_reference(text) for text in split_list(texts)]


def _readable(key: str, text: str, read: Callable[[str], Any]) -> None:
    """Raise InvalidValue, which decoding completes with the place in the file, where the text cannot be read."""
    try:
        read(text)
    except PipebenchError as error:
        raise InvalidValue(f"{key}: {error.message}", error.hint) from None
