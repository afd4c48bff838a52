"""Submeshes of a cluster: parts of one host in powers of two, and rows of whole hosts."""

from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import UnsupportedProblem


def hosts_of(cluster: Cluster) -> tuple[int, int]:
    """Hosts and devices of each: the groups of the innermost level, one host where there is no other level.

    Raises UnsupportedProblem where they are not alike or not a power of two.
    """
    each = min(cluster.levels[0].group, cluster.size)
    if cluster.size % each or each & (each - 1):
        raise UnsupportedProblem(
            f"alpa-inter needs hosts of a power of two of devices, all alike; {cluster.size} devices are in hosts "
            f"of {each}"
        )
    return cluster.size // each, each


def submesh_sizes(hosts: int, each: int, every: bool) -> list[int]:
    """Numbers of devices, ascending; the whole cluster is the last."""
    sizes = [2**power for power in range(each.bit_length())]
    rows = range(2, hosts + 1) if every else (2**power for power in range(1, hosts.bit_length()))
    return sorted({*sizes, *(rows_of * each for rows_of in rows), hosts * each})
