"""Cluster: devices and the levels of links between them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pipebench.domain.limits import MOST_MEMORY_BYTES, MOST_SECONDS
from pipebench.domain.value import (
    Value,
    require,
    require_count,
    require_name,
    require_rate,
    require_unique,
    short,
)

LinkMode = Literal["full", "half", "delay"]


class DeviceType(Value, frozen=True, kw_only=True):
    """A kind of device.

    name: what the cluster's `devices` and the profile's costs call it.
    memory_bytes: of one device.
    peak_flops: FLOP/s by precision, dense.
    memory_bandwidth_bytes_s: bytes/s of its own memory.
    peer_bandwidth_bytes_s: what one device sends to others of its node, one way, as effective rate (used for
    tensor parallelism inside a node; 0: unknown).
    source: where the figures come from.
    """

    name: str
    memory_bytes: int
    peak_flops: dict[str, float] = {}
    memory_bandwidth_bytes_s: float = 0.0
    peer_bandwidth_bytes_s: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        require_name("a device type", self.name)
        require(
            0 < self.memory_bytes <= MOST_MEMORY_BYTES,
            f"device type {self.name!r}: memory is {short(self.memory_bytes)}, it must be from 1 to 2^62 bytes",
        )
        rates = (*self.peak_flops.values(), self.memory_bandwidth_bytes_s, self.peer_bandwidth_bytes_s)
        for rate in rates:
            if rate != 0:
                require_rate(f"device type {self.name!r}: a rate", rate)


class LinkLevel(Value, frozen=True, kw_only=True):
    """Links inside groups of consecutive devices (node, rack, whole cluster).

    name: of the level, for tables.
    group: the number of devices of a group. Devices i and j share one where i // group == j // group.
    latency_s: seconds that each message takes besides its bytes.
    bandwidth_bytes_s: what one device can send, in one direction.
    shared_bandwidth_bytes_s: what all devices of one group of the level below can send together across this level
    (a node's network cards); None: no such limit.
    """

    name: str
    group: int
    latency_s: float = 0.0
    bandwidth_bytes_s: float
    shared_bandwidth_bytes_s: float | None = None

    def __post_init__(self) -> None:
        require_name("a link level", self.name)
        require_count(f"link level {self.name!r}: group", self.group)
        require(
            0 <= self.latency_s <= MOST_SECONDS,
            f"link level {self.name!r}: latency is {short(self.latency_s)}, it must be from 0 to {MOST_SECONDS:g}",
            "latency_s",
        )
        require_rate(f"link level {self.name!r}: bandwidth", self.bandwidth_bytes_s)
        if self.shared_bandwidth_bytes_s is not None:
            require_rate(f"link level {self.name!r}: shared bandwidth", self.shared_bandwidth_bytes_s)


class Ranks(Value, frozen=True, kw_only=True):
    """The ranks that a device of a cluster stands for, where they share out the sequence of each sample.

    count: of each device: the accelerators count * i, count * i + 1, … are device i.
    levels: links between single accelerators, groups counted in these.
    """

    count: int
    levels: tuple[LinkLevel, ...]

    def __post_init__(self) -> None:
        require_count("ranks of a device", self.count)
        require(self.count > 1, "one rank of a device is the device: leave ranks out")
        require(len(self.levels) > 0, "ranks have no link level")


class Cluster(Value, frozen=True, kw_only=True):
    """Devices with ids 0, 1, … and the links between them.

    name: of the cluster, for tables.
    types: the kinds of devices.
    devices: for each device the name of its type.
    levels: links, from the innermost to the whole cluster. The innermost that holds two devices links them.
    link_mode: how many transfers a pair of devices carries at a time. `full`: one in each direction. `half`: one.
    `delay`: any number.
    ranks: not there where a device is one accelerator; else how many accelerators it stands for, all alike, with
    the links between them. Memory, rates and `levels` are then those of one of them.
    """

    name: str
    types: tuple[DeviceType, ...]
    devices: tuple[str, ...]
    levels: tuple[LinkLevel, ...]
    link_mode: LinkMode = "full"
    ranks: Ranks | UnsetType = UNSET

    def __post_init__(self) -> None:
        require(len(self.devices) > 0, f"cluster {self.name!r} has zero devices")
        require_unique("device type", (t.name for t in self.types))
        known = {t.name for t in self.types}
        for device, type_name in enumerate(self.devices):
            require(type_name in known, f"device {device}: {type_name!r} is not one of the cluster's types")
        require(len(self.levels) > 0, f"cluster {self.name!r} has no link level")
        groups = [level.group for level in self.levels]
        require(groups == sorted(set(groups)), "link levels must go from the smallest group to the largest")
        require(
            groups[-1] >= len(self.devices),
            f"the outermost link level spans {groups[-1]} of {len(self.devices)} devices",
        )
        require(
            self.ranks is UNSET or self.ranks.levels[-1].group >= self.accelerators,
            f"the outermost link level of ranks spans less than {self.accelerators} of them",
        )

    @cached_property
    def type_by_name(self) -> dict[str, DeviceType]:
        """Type name to type."""
        return {t.name: t for t in self.types}

    def type_of(self, device: int) -> DeviceType:
        """The type of one device."""
        return self.type_by_name[self.devices[device]]

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.devices)

    @property
    def rank_count(self) -> int:
        """Accelerators that each device stands for."""
        return 1 if self.ranks is UNSET else self.ranks.count

    @property
    def accelerators(self) -> int:
        """Number of accelerators: devices, times the ranks that each stands for."""
        return self.size * self.rank_count

    @property
    def rank_levels(self) -> tuple[LinkLevel, ...]:
        """Links between single accelerators, groups counted in these."""
        return self.levels if self.ranks is UNSET else self.ranks.levels

    @property
    def memory_bytes(self) -> int:
        """Memory of the smallest device."""
        return min(self.type_by_name[name].memory_bytes for name in self.devices)

    def level_spanning(self, first: int, last: int) -> LinkLevel:
        """The innermost level of which one group holds both devices."""
        for level in self.levels:
            if first // level.group == last // level.group:
                return level
        return self.levels[-1]

    def flat(self, devices: int) -> LinkLevel:
        """One level that stands for all, for planners that know only one.

        It has the slowest bandwidth and the largest latency of the levels up to the innermost that holds `devices`
        devices.
        """
        held = [devices <= level.group for level in self.levels]
        return as_one(self.levels[: held.index(True) + 1] if True in held else self.levels)

    def first(self, devices: int) -> "Cluster":
        """The cluster of the first `devices` devices."""
        require(1 <= devices <= self.size, f"cluster {self.name!r} has {self.size} devices, not {devices}")
        kept = self.devices[:devices]
        levels = [level for level in self.levels if level.group < devices]
        levels.append(self.flat(devices))
        return Cluster(
            name=self.name,
            types=tuple(t for t in self.types if t.name in kept),
            devices=kept,
            levels=tuple(levels),
            link_mode=self.link_mode,
            ranks=self.ranks,
        )


def as_one(levels: Sequence[LinkLevel]) -> LinkLevel:
    """The last level with the slowest bandwidth and the largest latency of all."""
    if len(levels) == 1:
        return levels[0]
    return replace(
        levels[-1],
        latency_s=max(level.latency_s for level in levels),
        bandwidth_bytes_s=min(level.bandwidth_bytes_s for level in levels),
    )
