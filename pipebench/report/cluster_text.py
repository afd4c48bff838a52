"""The links of a cluster, a line a level."""

from collections.abc import Iterator

from pipebench.domain.cluster import Cluster
from pipebench.domain.units import readable_bytes, readable_seconds


def cluster_lines(cluster: Cluster) -> Iterator[str]:
    """Latency and bandwidth of every level; which devices it joins, where there are several."""
    for level in cluster.levels:
        reach = f", {level.name}: {level.group} of {cluster.size} devices" if len(cluster.levels) > 1 else ""
        rate = f"bandwidth {readable_bytes(round(level.bandwidth_bytes_s))}/s"
        shared = level.shared_bandwidth_bytes_s
        limit = "" if shared is None else f", {readable_bytes(round(shared))}/s by all of a node together"
        yield f"{cluster.name}{reach}: latency {readable_seconds(level.latency_s)}, {rate}{limit}"
