"""Clusters by name or from a file: the table that ships, and one for the devices, memory and
bandwidth asked for.
"""

import math
import os
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from pipebench.documents.printable import in_unicode
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, LinkMode
from pipebench.domain.errors import PipebenchError, nearest, unknown
from pipebench.domain.limits import MOST_DEVICES
from pipebench.domain.value import Value, require
from pipebench.formats.devices import DeviceFacts, device_names, load_device, require_rate
from pipebench.formats.documents import read_document
from pipebench.formats.files import read_file
from pipebench.formats.json_forms import starts_object
from pipebench.formats.quantities import parse_bandwidth, parse_bytes
from pipebench.formats.typed_text import parse_toml

Rates = Literal["nominal", "effective"]


class LevelFacts(Value, frozen=True, kw_only=True):
    """One link level: `group` consecutive devices, all of them where it is left out. Rates one way."""

    name: str
    group: int | None = None
    latency_us: float = 0.0
    bandwidth_gb_s: float
    effective_bandwidth_gb_s: float | None = None
    shared_bandwidth_gb_s: float | None = None
    effective_shared_bandwidth_gb_s: float | None = None

    def __post_init__(self) -> None:
        require(self.group is None or self.group >= 1, f"group is {self.group}, it must be at least 1")
        require(
            math.isfinite(self.latency_us) and self.latency_us >= 0,
            f"latency_us is {self.latency_us:g}, it must be finite and not negative",
        )
        for name in self.__struct_fields__:
            if name.endswith("_gb_s") and getattr(self, name) is not None:
                require_rate(name, getattr(self, name))

    def level(self, devices: int, rates: Rates) -> LinkLevel:
        """The level among `devices` devices. An effective rate that is not known is the nominal one."""
        each, shared = self.bandwidth_gb_s, self.shared_bandwidth_gb_s
        if rates == "effective":
            each = self.effective_bandwidth_gb_s or each
            shared = self.effective_shared_bandwidth_gb_s or shared
        return LinkLevel(
            name=self.name,
            group=self.group or devices,
            latency_s=self.latency_us / 1e6,
            bandwidth_bytes_s=each * 1e9,
            shared_bandwidth_bytes_s=None if shared is None else shared * 1e9,
        )


class ClusterFacts(Value, frozen=True, kw_only=True):
    """One cluster. device: a device type's name; left out, the type that the profile was made for.

    levels: from the innermost outwards; only the last may leave out its group. devices: device types that the
    table of devices does not have.
    """

    name: str = ""
    summary: str = ""
    device: str | None = None
    link_mode: LinkMode = "full"
    levels: tuple[LevelFacts, ...]
    devices: dict[str, DeviceFacts] = {}
    sources: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        require(len(self.levels) > 0, "a cluster needs at least one link level")
        groups = [level.group for level in self.levels]
        sized = [group for group in groups if group is not None]
        require(None not in groups[:-1], "only the last link level may leave out its group")
        require(sized == sorted(set(sized)), f"groups go from the smallest to the largest, not {sized}")
        for inner, outer in zip(self.levels[:-1], self.levels[1:-1], strict=False):  # the last one spans all
            require(
                (outer.group or 0) % (inner.group or 1) == 0,
                f"group {outer.group} of {outer.name!r} is no multiple of group {inner.group} of {inner.name!r}",
            )


class ClusterTable(Value, frozen=True, kw_only=True):
    """clusters.toml."""

    sources: dict[str, str]
    clusters: dict[str, ClusterFacts]


@lru_cache(maxsize=1)
def cluster_table() -> ClusterTable:
    """The clusters that ship."""
    data = files("pipebench.formats").joinpath("presets/clusters.toml").read_bytes()
    return parse_toml(data, ClusterTable, "clusters.toml")


DEFAULT_DEVICE_TYPE = "V100-SXM2-16GB"


def cluster_names() -> list[str]:
    """Names of the clusters that ship."""
    return sorted(cluster_table().clusters)


def load_cluster(
    name: str,
    devices: int,
    *,
    memory: str | None = None,
    bandwidth: str | None = None,
    device_type: str = DEFAULT_DEVICE_TYPE,
    rates: Rates = "nominal",
) -> Cluster:
    """The first `devices` devices of a cluster that ships, of a TOML file, or of a cluster document.

    memory: of each device, such as '12GB', in place of the table's. bandwidth: such as '12GB/s', one way for
    each device on every link level; limits that a node shares are dropped with it. device_type: for a cluster
    that names no device of its own. rates: `nominal` or, where they are known, `effective`.

    Raises PipebenchError: an unknown name or key (with the nearest one), a wrong type or value (with its place
    in the file), zero devices, more devices than there are, memory that nobody said.
    """
    if not 1 <= devices <= MOST_DEVICES:
        raise PipebenchError(f"a cluster cannot have {devices} devices", f"give 1 to {MOST_DEVICES}")
    memory_bytes = None if memory is None else parse_bytes(memory)
    rate = None if bandwidth is None else parse_bandwidth(bandwidth)
    cluster = _load(name, devices, memory_bytes, device_type, rates)
    if memory_bytes is not None:
        cluster = replace(cluster, types=tuple(replace(t, memory_bytes=memory_bytes) for t in cluster.types))
    if rate is not None:
        levels = (
            replace(level, bandwidth_bytes_s=rate, shared_bandwidth_bytes_s=None) for level in cluster.levels
        )
        cluster = replace(cluster, levels=tuple(levels))
    return cluster


def size_of_document(name: str) -> int | None:
    """How many devices the cluster of a cluster document has; None for one that ships or a TOML file, which have
    as many as one asks for. Raises PipebenchError for a file that cannot be read.
    """
    if name in cluster_table().clusters or not os.path.exists(name) or not starts_object(read_file(name)):
        return None
    cluster: Cluster = read_document(name, "cluster")
    return cluster.size


def _load(name: str, devices: int, memory_bytes: int | None, device_type: str, rates: Rates) -> Cluster:
    table = cluster_table().clusters
    if name in table:
        return _cluster(name, table[name], devices, memory_bytes, device_type, rates)
    if not (name.endswith((".toml", ".json")) or "/" in name or os.path.exists(name)):
        raise unknown("cluster", name, table)
    data = read_file(name)
    if starts_object(data):
        cluster: Cluster = read_document(name, "cluster")
        return cluster.first(devices)
    facts = parse_toml(data, ClusterFacts, name)
    return _cluster(facts.name or in_unicode(Path(name).stem), facts, devices, memory_bytes, device_type, rates)


def _cluster(
    name: str, facts: ClusterFacts, devices: int, memory_bytes: int | None, device_type: str, rates: Rates
) -> Cluster:
    kind = _device(name, facts, memory_bytes, device_type)
    levels = [level.level(devices, rates) for level in facts.levels]
    if levels[-1].group < devices:
        raise PipebenchError(
            f"cluster {name!r} joins at most {levels[-1].group} devices, not {devices}",
            "leave out the group of its last link level",
        )
    inner = sum(level.group < devices for level in levels)
    return Cluster(
        name=name,
        types=(kind,),
        devices=(kind.name,) * devices,
        levels=tuple(levels[: inner + 1]),
        link_mode=facts.link_mode,
    )


def _device(name: str, facts: ClusterFacts, memory_bytes: int | None, device_type: str) -> DeviceType:
    """The cluster's own device type; else the one asked for, of which nothing but its memory may be known."""
    wanted = facts.device or device_type
    if wanted in facts.devices:
        return facts.devices[wanted].device_type(wanted)
    if wanted in device_names():
        return load_device(wanted)
    if facts.device is not None:
        raise PipebenchError(
            f"cluster {name!r}: unknown device type {wanted!r}", nearest(wanted, [*device_names(), *facts.devices])
        )
    if memory_bytes is None:
        raise PipebenchError(f"the memory of device type {wanted!r} is not known", "say it, such as --memory 16GB")
    return DeviceType(name=wanted, memory_bytes=memory_bytes)
