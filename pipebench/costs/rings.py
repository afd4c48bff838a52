"""Rings: the links of collectives over the ranks that hold the same weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.costs.messages import levels_crossed
from pipebench.domain.cluster import Cluster, LinkLevel, as_one
from pipebench.domain.problem import Regime


@dataclass(frozen=True, slots=True)
class Ring:
    """The links of the collectives over the ranks that hold the same weights.

    inside: between those that share out a copy, or between all where nothing is shared out.
    between: between those with the same share of several copies (`Regime.sharding_ranks`). There are as many such
    rings at once as shares.
    """

    inside: LinkLevel
    between: LinkLevel

    def without_latency(self) -> "Ring":
        """The same links, on which a message of no bytes takes no time."""
        return Ring(replace(self.inside, latency_s=0.0), replace(self.between, latency_s=0.0))


Rings = Callable[[int], Ring]
"""Number of rings that run at once to the links of each."""


def ring(cluster: Cluster, regime: Regime, blocks: Sequence[tuple[int, int]], ranks: int, rings: int = 1) -> Ring:
    """The links of each of `rings` rings of `ranks` ranks.

    blocks: lowest and highest device of the replicas of a stage in each pipeline and copy. Ranks that share out a
    copy lie side by side in one block; where they do not fit in, they are taken to have the links of all.
    """
    lowest, highest = min(block[0] for block in blocks), max(block[1] for block in blocks)
    whole = ring_level(cluster, lowest, highest, rings, regime.spreads_rings)
    shards, each = regime.shards(ranks), cluster.rank_count
    if shards == ranks:
        return Ring(whole, whole)
    between = ring_level(cluster, lowest, highest, rings * shards, regime.spreads_rings)
    sizes, width = [last + 1 - first for first, last in blocks], shards * rings // each
    if sum(sizes) * each != ranks * rings or any(size % width for size in sizes):
        return Ring(whole, between)
    starts = [start for first, last in blocks for start in range(first, last + 1, width)]
    widest = max(starts, key=lambda start: _levels(cluster, start, start + width - 1))
    inside = ring_level(cluster, widest, widest + width - 1, rings, regime.spreads_rings)
    return Ring(inside, between)


def fastest_ring(cluster: Cluster, regime: Regime, devices: int, rings: int = 1) -> Ring:
    """The fastest links that `rings` rings over `devices` devices can have, wherever these are.

    They span at least the innermost level that holds as many; a wider span adds levels and so never speeds up the
    slowest bandwidth, the latency or the share of a ring. The same holds for ranks that share out a copy.
    """
    ranks = devices * cluster.rank_count // rings
    shards = regime.shards(ranks)
    together = devices if shards == ranks else shards * rings // cluster.rank_count
    inside = ring_level(cluster, 0, together - 1, rings, regime.spreads_rings)
    if shards == ranks:
        return Ring(inside, inside)
    return Ring(inside, ring_level(cluster, 0, devices - 1, rings * shards, regime.spreads_rings))


def _levels(cluster: Cluster, lowest: int, highest: int) -> int:
    """How many link levels some devices span."""
    return len(_levels_of_ranks(cluster, lowest, highest))


def _levels_of_ranks(cluster: Cluster, lowest: int, highest: int) -> tuple[LinkLevel, ...]:
    each = cluster.rank_count
    return levels_crossed(cluster.rank_levels, lowest * each, (highest + 1) * each - 1)


def ring_level(cluster: Cluster, lowest: int, highest: int, rings: int = 1, spread: bool = False) -> LinkLevel:
    """The link level for each of `rings` rings over the devices lowest … highest, while all of them run.

    As `slowest`, but rings share the shared bandwidth of a level. min(rings, devices of a group of the level
    below) rings leave each group, because tensor-parallel rank i reduces with rank i of the other replicas.
    spread: a ring leaves a group over the links of all its members there, as NCCL's channels do, not over one.
    Where a device stands for several ranks a ring is one of ranks, on the links between these.
    """
    crossed = _levels_of_ranks(cluster, lowest, highest)
    if spread:
        crossed = tuple(
            _spread_over_members(level, inner, rings)
            for inner, level in zip((None, *crossed), crossed, strict=False)
        )
    shares = [
        level.shared_bandwidth_bytes_s / min(rings, below)
        for level, below in zip(crossed, (1, *(level.group for level in crossed)), strict=False)
        if level.shared_bandwidth_bytes_s is not None
    ]
    one = as_one(crossed)
    return replace(one, bandwidth_bytes_s=min(one.bandwidth_bytes_s, *shares)) if shares else one


def _spread_over_members(level: LinkLevel, inner: LinkLevel | None, rings: int) -> LinkLevel:
    """The level with the bandwidth of all devices of a group of the level below that are in one of the rings."""
    if inner is None:
        return level
    members = max(1, inner.group // rings)
    return replace(level, bandwidth_bytes_s=members * level.bandwidth_bytes_s)
