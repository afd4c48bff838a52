"""Ranks that share out experts: what they exchange, and how long an all-to-all takes.

Each rank sends the share (E - 1) / E of the copies of its tokens to the others (Lepikhin et al. 2021, GShard,
section 3.2), and gets as much back: tokens spread evenly over the experts. Inside a node an all-to-all has its
measured curve where there is one; else the links are taken to reach the rate that they reach in an all-reduce, of
which an all-to-all sends half. Between nodes none was measured: each rank has its share of the node's network
cards, beside what stays inside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipebench.domain.cluster import LinkLevel


@dataclass(frozen=True, slots=True)
class SharedExperts:
    """ranks: that share out the experts; 1: each has all. links: of the cluster, from the innermost."""

    ranks: int = 1
    links: tuple[LinkLevel, ...] = ()

    def __bool__(self) -> bool:
        return self.ranks > 1


def all_to_all_s(
    size_bytes: float,
    ranks: int,
    links: Sequence[LinkLevel],
    inside_s: Callable[[float, int], float],
    network_share: float = 1.0,
) -> float:
    """Seconds until each of so many consecutive devices has sent its part of `size_bytes` to each other one.

    inside_s(bytes, devices): of one inside a node. network_share: of a network's bandwidth that is reached.
    A device crosses each level with what goes to ranks of other groups of the level below, all levels at once; the
    latency of a level is taken once.
    """
    if ranks == 1 or size_bytes == 0:
        return 0.0
    crossed = [level for level in links if level.group < ranks]
    if not crossed or len(crossed) == len(links):
        return inside_s(size_bytes, ranks)
    inside = crossed[0].group
    longest = inside_s(size_bytes * inside / ranks, inside) if inside > 1 else 0.0
    for below, level in zip(crossed, links[1:], strict=False):
        shared = level.shared_bandwidth_bytes_s
        rate = level.bandwidth_bytes_s if shared is None else min(level.bandwidth_bytes_s, shared / below.group)
        sent = size_bytes * (ranks - below.group) / ranks
        longest = max(longest, sent / (network_share * rate) + level.latency_s)
    return longest
