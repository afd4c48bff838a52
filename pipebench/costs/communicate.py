"""Time of messages and all-reduces on a cluster's links, as integer nanoseconds."""

from collections.abc import Sequence

from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.cluster import Cluster, LinkLevel


def level_between(cluster: Cluster, senders: Sequence[int], receivers: Sequence[int]) -> LinkLevel:
    """The slowest level that a message between two sets of devices crosses."""
    lowest = min(*senders, *receivers)
    highest = max(*senders, *receivers)
    return slowest(cluster, lowest, highest)


def level_within(cluster: Cluster, devices: Sequence[int]) -> LinkLevel:
    """The slowest level inside one set of devices."""
    return slowest(cluster, min(devices), max(devices))


def slowest(cluster: Cluster, lowest: int, highest: int) -> LinkLevel:
    """The slowest level up to the innermost one that spans both device ids."""
    outermost = cluster.level_spanning(lowest, highest)
    crossed = cluster.levels[: cluster.levels.index(outermost) + 1]
    return min(crossed, key=lambda level: level.bandwidth_bytes_s)


def message_ns(level: LinkLevel, bytes_sent: int, senders: int, receivers: int) -> int:
    """latency + bytes / (min(senders, receivers) * bandwidth), rounded half-even to ns; 0 bytes cost nothing."""
    if bytes_sent == 0:
        return 0
    rate = min(senders, receivers) * level.bandwidth_bytes_s
    return round((level.latency_s + bytes_sent / rate) * NS_PER_S)


def all_reduce_ns(level: LinkLevel, bytes_reduced: int, devices: int) -> int:
    """Ring all-reduce: 2(d-1) steps of bytes/d and one latency each (Patarasuk and Yuan 2009, section 3)."""
    if devices <= 1 or bytes_reduced == 0:
        return 0
    steps = 2 * (devices - 1)
    seconds = steps * (level.latency_s + bytes_reduced / devices / level.bandwidth_bytes_s)
    return round(seconds * NS_PER_S)
