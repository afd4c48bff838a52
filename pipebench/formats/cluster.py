"""Clusters by name or from a file, for the number of devices, memory and bandwidth that are asked for."""

from pathlib import Path

from msgspec.structs import replace

from pipebench.domain.cluster import MOST_DEVICES, Cluster, DeviceType
from pipebench.domain.errors import PipebenchError, nearest, unknown
from pipebench.formats.cluster_table import ClusterFacts, Rates, cluster_table
from pipebench.formats.devices import device_names, load_device
from pipebench.formats.files import read_file
from pipebench.formats.native import looks_native, read_document
from pipebench.formats.quantities import parse_bandwidth, parse_bytes
from pipebench.formats.strict import parse_toml

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
    if name in cluster_table().clusters or not Path(name).exists() or not looks_native(read_file(name)):
        return None
    cluster: Cluster = read_document(name, "cluster")
    return cluster.size


def _load(name: str, devices: int, memory_bytes: int | None, device_type: str, rates: Rates) -> Cluster:
    table = cluster_table().clusters
    if name in table:
        return _cluster(name, table[name], devices, memory_bytes, device_type, rates)
    if not (name.endswith((".toml", ".json")) or "/" in name or Path(name).exists()):
        raise unknown("cluster", name, table)
    data = read_file(name)
    if looks_native(data):
        cluster: Cluster = read_document(name, "cluster")
        return cluster.first(devices)
    facts = parse_toml(data, ClusterFacts, name)
    return _cluster(facts.name or Path(name).stem, facts, devices, memory_bytes, device_type, rates)


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
