"""Profile: an OperatorGraph plus what its operators cost on each device type."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from msgspec import UNSET, UnsetType

from pipebench.domain.calibration import Calibration
from pipebench.domain.errors import InvalidValue, PipebenchError, nearest
from pipebench.domain.framework import Attention, RecomputeModule
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.value import (
    Value,
    require,
    require_bytes,
    require_count,
    require_name,
    require_rate,
    require_seconds,
    require_unique,
)

Precision = Literal["fp32", "fp16", "bf16"]
ELEMENT_BYTES: dict[Precision, int] = {"fp32": 4, "fp16": 2, "bf16": 2}
NarrowPrecision = Literal["fp8", "fp4"]
NARROW_BYTES: dict[NarrowPrecision, float] = {"fp8": 1, "fp4": 0.5625}
"""Of an element of layers' products that run in fewer bits than the weights have. fp4 is NVFP4: 4 bits, and 8 of a
scale for each sixteen elements (NVIDIA et al. 2025, Pretraining Large Language Models with NVFP4, section 2)."""


class Alternative(Value, frozen=True, kw_only=True, omit_defaults=True):
    """Another way to run one operator. All figures are those of one device.

    id: what a stage says in `choice` to run the operator this way.
    tensor_parallel: the number of devices that it splits the operator over.
    recompute: whether its backward runs the forward again.
    selective: of one that recomputes: whether parts of the operator run again, such as the core of attention
    (Korthikanti et al. 2022), not all of it.
    forward_s, backward_s: seconds at each profiled micro-batch size (backward of inputs and weights together,
    recomputation included).
    parameter_bytes: weights; versions, gradients and optimizer state are never included.
    saved_bytes_per_sample: what the forward keeps for the backward.
    fixed_bytes: what the device holds besides, whatever the micro-batch.
    collective_bytes: bytes for a sample that the device all-reduces in each direction (tensor parallelism). Their
    time is included in forward_s and backward_s.
    boundary_bytes: forward and backward bytes for a sample that this way adds to a tensor that crosses to another
    stage (Piper's synchronisation of tensor-parallel stages).
    transient_bytes_per_sample: memory held only during the operator's own backward (what a recomputed forward
    makes again); a stage holds the largest of its operators.
    forward_collective_s, backward_collective_s: the seconds of forward_s and backward_s that collectives add, at
    each profiled micro-batch size; empty where they are not told apart.
    expert_bytes: the part of parameter_bytes that is of experts which ranks share out (`Parameter.expert_bytes`).
    """

    id: str
    tensor_parallel: int = 1
    recompute: bool = False
    selective: bool = False
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    parameter_bytes: int
    saved_bytes_per_sample: float
    fixed_bytes: int = 0
    collective_bytes: float = 0.0
    boundary_bytes: dict[str, tuple[float, float]] = {}
    transient_bytes_per_sample: float = 0.0
    forward_collective_s: tuple[float, ...] = ()
    backward_collective_s: tuple[float, ...] = ()
    expert_bytes: int = 0

    def __post_init__(self) -> None:
        require_name("an alternative", self.id)
        owner = f"alternative {self.id!r}"
        require_count(f"{owner}: tensor_parallel", self.tensor_parallel)
        require(self.recompute or not self.selective, f"{owner} is selective, and does not recompute")
        require_seconds(owner, "forward_s", self.forward_s)
        require_seconds(owner, "backward_s", self.backward_s)
        require_seconds(owner, "forward_collective_s", self.forward_collective_s)
        require_seconds(owner, "backward_collective_s", self.backward_collective_s)
        for name in ("forward", "backward"):
            whole_s, parts_s = getattr(self, f"{name}_s"), getattr(self, f"{name}_collective_s")
            require(
                all(part <= whole * (1 + 1e-9) for whole, part in zip(whole_s, parts_s, strict=False)),
                f"{owner}: {name}_collective_s is more than {name}_s",
            )
        for tensor, (forward, backward) in self.boundary_bytes.items():
            require_bytes(f"{owner}: boundary_bytes of {tensor!r}", forward=forward, backward=backward)
        require_bytes(
            owner,
            parameter_bytes=self.parameter_bytes,
            saved_bytes_per_sample=self.saved_bytes_per_sample,
            fixed_bytes=self.fixed_bytes,
            collective_bytes=self.collective_bytes,
            transient_bytes_per_sample=self.transient_bytes_per_sample,
            expert_bytes=self.expert_bytes,
        )
        require(self.expert_bytes <= self.parameter_bytes, f"{owner}: expert_bytes is more than parameter_bytes")


class OperatorCosts(Value, frozen=True, kw_only=True):
    """What one operator costs on one device, without splitting it.

    operator: its name.
    forward_s, backward_s: seconds at each profiled micro-batch size.
    weight_gradient_s: the part of the backward that computes weight gradients, where it was measured apart.
    saved_bytes_per_sample: what the forward keeps for the backward.
    workspace_bytes: scratch memory while it runs.
    alternatives: other ways to run it (split over devices, recomputed), where there are any.
    """

    operator: str
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    weight_gradient_s: tuple[float, ...] = ()
    saved_bytes_per_sample: float = 0.0
    workspace_bytes: int = 0
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        owner = f"operator {self.operator!r}"
        require_seconds(owner, "forward_s", self.forward_s)
        require_seconds(owner, "backward_s", self.backward_s)
        require_seconds(owner, "weight_gradient_s", self.weight_gradient_s)
        for whole, part in zip(self.backward_s, self.weight_gradient_s, strict=False):
            require(
                part <= whole * (1 + 1e-9),
                f"{owner}: weight_gradient_s is {part}, more than the backward, {whole}",
            )
        require_bytes(
            owner, saved_bytes_per_sample=self.saved_bytes_per_sample, workspace_bytes=self.workspace_bytes
        )
        require_unique(f"{owner}: alternative", (a.id for a in self.alternatives))

    def alternative(self, identifier: str) -> Alternative:
        """The alternative of that id. Raises PipebenchError with the nearest one."""
        for candidate in self.alternatives:
            if candidate.id == identifier:
                return candidate
        raise PipebenchError(
            f"operator {self.operator!r} has no alternative {identifier!r}",
            nearest(identifier, (a.id for a in self.alternatives)),
        )


class DeviceCosts(Value, frozen=True, kw_only=True):
    """Costs on one device type.

    device_type: its name, as in the cluster's `types`.
    micro_batches: the sizes that were profiled, in samples, ascending. A list of seconds has an entry for each.
    operators: their costs, in the order of the graph's operators.
    """

    device_type: str
    micro_batches: tuple[int, ...]
    operators: tuple[OperatorCosts, ...]

    def __post_init__(self) -> None:
        where = f"costs on {self.device_type!r}"
        require(len(self.micro_batches) > 0, f"{where}: no micro-batch size was profiled")
        for size in self.micro_batches:
            require_count(f"{where}: a micro-batch", size)
        require(
            list(self.micro_batches) == sorted(set(self.micro_batches)),
            f"{where}: micro_batches must be ascending",
        )
        sizes = len(self.micro_batches)
        for costs in self.operators:
            timed = [costs.forward_s, costs.backward_s]
            timed += [costs.weight_gradient_s] if costs.weight_gradient_s else []
            for alternative in costs.alternatives:
                timed += [alternative.forward_s, alternative.backward_s]
                timed += [alternative.forward_collective_s] if alternative.forward_collective_s else []
                timed += [alternative.backward_collective_s] if alternative.backward_collective_s else []
            require(
                all(len(times) == sizes for times in timed),
                f"{where}: operator {costs.operator!r} needs one time for each of the {sizes} micro-batch sizes",
            )


class Setting(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The devices and the mini-batch that a foreign file was made for. They are defaults.

    devices: their number.
    memory_bytes: of each device.
    bandwidth_bytes_s: between two devices, one way.
    mini_batch: samples for one weight update.
    """

    devices: int | None = None
    memory_bytes: int | None = None
    bandwidth_bytes_s: float | None = None
    mini_batch: int | None = None

    def __post_init__(self) -> None:
        for name in ("devices", "memory_bytes", "mini_batch"):
            said = getattr(self, name)
            require(said is None or said >= 1, f"{name} of the setting is {said}, it must be at least 1")
        if self.bandwidth_bytes_s is not None:
            require_rate("bandwidth of the setting", self.bandwidth_bytes_s)


class Provenance(Value, frozen=True, kw_only=True):
    """The origin of the figures: who measured them, on what, when, with which versions and spread.

    profiler: the component that measured or computed the figures, with its options.
    made_by: the package or the file that they come from.
    device: the device that was measured, in words.
    date: when they were measured.
    versions: name of a package to its version.
    relative_spread: how much measured times vary from run to run, as a share of the median; None: not known.
    saved: how the saved bytes were found.
    notes: lines for the reader, but those that have a field of their own.
    setting: what a foreign file was made for, where it says so.
    model: the model that the profiler captured, so that it can be built again.
    calibration: of a computed profile whose rates were fitted to measured ones.
    kernels: where those were measured that a computed profile is made of, if not on its device itself.
    products: the precision of the layers' products, where it is a narrower one than that of the weights.
    attention: how attention runs, where a framework's kernels are priced.
    modules: what runs again in a layer that recomputes selectively, where that is not attention's core alone.
    """

    profiler: str = ""
    made_by: str = ""
    device: str = ""
    date: str = ""
    versions: dict[str, str] = {}
    relative_spread: float | None = None
    saved: str = ""
    notes: tuple[str, ...] = ()
    setting: Setting | UnsetType = UNSET
    model: str | UnsetType = UNSET
    calibration: Calibration | UnsetType = UNSET
    kernels: str | UnsetType = UNSET
    products: NarrowPrecision | UnsetType = UNSET
    attention: Attention | UnsetType = UNSET
    modules: tuple[RecomputeModule, ...] | UnsetType = UNSET

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines for the reader: the notes, and where the kernels come from."""
        return self.notes if self.kernels is UNSET else (*self.notes, self.kernels)

    @property
    def captured(self) -> str:
        """The model that was captured, empty where none was."""
        return "" if self.model is UNSET else self.model


class Profile(Value, frozen=True, kw_only=True):
    """An OperatorGraph and its costs for each device type, with provenance.

    name: of the profile, for tables.
    graph: the operators, without times.
    precision: of the weights and activations that the figures are of.
    costs: one entry for each device type.
    provenance: where the figures come from. Two profiles that differ in it alone make the same problem.
    """

    name: str
    graph: OperatorGraph
    precision: Precision = "fp32"
    costs: tuple[DeviceCosts, ...]
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        require(len(self.costs) > 0, f"profile {self.name!r} has costs for no device type")
        require_unique("device type", (costs.device_type for costs in self.costs))
        names = tuple(op.name for op in self.graph.operators)
        for costs in self.costs:
            require(
                tuple(c.operator for c in costs.operators) == names,
                f"profile {self.name!r}: costs on {costs.device_type!r} must list the graph's operators in order",
            )

    @cached_property
    def device_types(self) -> tuple[str, ...]:
        """The device types that have costs."""
        return tuple(costs.device_type for costs in self.costs)

    def require_work(self, device_types: Iterable[str]) -> None:
        """Raise InvalidValue where every time on a device type is 0: no plan could be told from another."""
        for device_type in device_types:
            costs = self.on(device_type)
            if not any(any(each.forward_s) or any(each.backward_s) for each in costs.operators):
                raise InvalidValue(
                    f"profile {self.name!r}: every time on device type {device_type!r} is 0",
                    "measure it again, or write times above 0 into forward_s and backward_s of its operators",
                )

    def on(self, device_type: str) -> DeviceCosts:
        """Costs on one device type. Raises InvalidValue with the types that there are."""
        for costs in self.costs:
            if costs.device_type == device_type:
                return costs
        raise InvalidValue(
            f"profile {self.name!r} has no costs for device type {device_type!r}",
            f"it has those of {', '.join(self.device_types)}: take a cluster of them, a model in its place, or, "
            f"where a foreign file's times are of this type, FILE[device={device_type}]",
        )
