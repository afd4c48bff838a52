"""Which link level a message or a ring of a cluster meets."""

from collections.abc import Sequence

from msgspec.structs import replace

from pipebench.domain.cluster import Cluster, LinkLevel, as_one


def level_between(cluster: Cluster, senders: Sequence[int], receivers: Sequence[int]) -> LinkLevel:
    """What a message between two sets of devices meets: see `slowest`."""
    return slowest(cluster, min(*senders, *receivers), max(*senders, *receivers))


def slowest(cluster: Cluster, lowest: int, highest: int) -> LinkLevel:
    """The slowest bandwidth and the largest latency of the levels up to the innermost that spans both ids."""
    return as_one(_crossed(cluster, lowest, highest))


def ring_level(cluster: Cluster, lowest: int, highest: int, rings: int = 1) -> LinkLevel:
    """What each of `rings` rings over devices lowest … highest meets while all of them run.

    As `slowest`; where a level has a shared bandwidth, the rings that leave one group of the level below
    share it. min(rings, devices of that group) do: tensor-parallel rank i reduces with rank i of the others.
    """
    crossed = _crossed(cluster, lowest, highest)
    shares = [
        level.shared_bandwidth_bytes_s / min(rings, below)
        for level, below in zip(crossed, (1, *(level.group for level in crossed)), strict=False)
        if level.shared_bandwidth_bytes_s is not None
    ]
    one = as_one(crossed)
    return replace(one, bandwidth_bytes_s=min(one.bandwidth_bytes_s, *shares)) if shares else one


def _crossed(cluster: Cluster, lowest: int, highest: int) -> tuple[LinkLevel, ...]:
    outermost = cluster.level_spanning(lowest, highest)
    return cluster.levels[: cluster.levels.index(outermost) + 1]
