"""Ranks that share out sequences: what they wait for of keys and values while attention's core runs in steps.

Each of C ranks has the queries of its part of the sequence. Keys and values of all parts come by, and a step of
the core works on those of one part; with two chunks on each rank all C steps have equal work under a causal mask,
too (Liu et al. 2023, Ring Attention; Megatron-LM, context_parallel). No such exchange was measured: a hop inside a
node is taken to last as long as an all-reduce of as many bytes between two devices, each of which then sends them
once; between nodes each rank has its share of the node's network cards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipebench.domain.cluster import LinkLevel
from pipebench.domain.framework import ContextExchange


@dataclass(frozen=True, slots=True)
class SharedSequence:
    """ranks: that share out each sequence; 1: each has whole ones. links: of the cluster, from the innermost.

    how: keys and values travel.
    """

    ranks: int = 1
    links: tuple[LinkLevel, ...] = ()
    how: ContextExchange = "ring"

    def __bool__(self) -> bool:
        return self.ranks > 1


def hop_s(
    size_bytes: float,
    ranks: int,
    abreast: int,
    links: Sequence[LinkLevel],
    all_reduce_s: Callable[[float, int], float],
    network_share: float = 1.0,
) -> float:
    """Seconds in which each of so many ranks sends `size_bytes` to the next one.

    abreast: consecutive devices that are one of these ranks of a ring each, as tensor-parallel ones: a ring passes
    from node to node over one link, and so many rings do at once. all_reduce_s(bytes, devices): inside a node.
    network_share: of a network's bandwidth that is reached. The slowest link of the ring paces all ranks.
    """
    if ranks == 1 or size_bytes == 0:
        return 0.0
    inside_s = all_reduce_s(size_bytes, 2)
    crossed = [level for level in links if level.group < ranks * abreast]
    if not crossed or len(crossed) == len(links):
        return inside_s
    longest = inside_s if crossed[0].group > abreast else 0.0
    for below, level in zip(crossed, links[1:], strict=False):
        shared = level.shared_bandwidth_bytes_s
        rate = level.bandwidth_bytes_s
        if shared is not None:
            rate = min(rate, shared / min(abreast, below.group))
        longest = max(longest, size_bytes / (network_share * rate) + level.latency_s)
    return longest


def forward_waits_s(how: ContextExchange, ranks: int, step_s: float, hop: Callable[[float], float]) -> list[float]:
    """What the device waits for in a forward, each exchange apart. step_s: attention's core with one part.

    hop(parts): seconds in which keys and values of so many parts go to the next rank.
    ring: behind each step but the last stands what the hop takes beyond it (TransformerEngine,
    AttnFuncWithCPAndKVP2P). gather: all parts come beside the first step, in as many hops (PyTorch,
    _templated_ring_attention with _AllGatherRotater).
    """
    if ranks == 1:
        return []
    if how == "gather":
        return [max(0.0, (ranks - 1) * hop(1) - step_s)]
    return [max(0.0, hop(1) - step_s)] * (ranks - 1)


def backward_waits_s(
    how: ContextExchange, ranks: int, step_s: float, hop: Callable[[float], float]
) -> list[float]:
    """The same in a backward, where gradients of keys and values travel to the rank that made these.

    ring: keys and values beside the first step, their gradients beside the last, both beside the others. gather:
    all parts again beside the first step; gradients of each step beside the next one, and once behind the last.
    """
    if ranks == 1:
        return []
    if how == "gather":
        gathered = max(0.0, (ranks - 1) * hop(1) - step_s)
        return [gathered, *[max(0.0, hop(1) - step_s)] * (ranks - 1), hop(1)]
    ends = max(0.0, hop(1) - step_s)
    return [ends, *[max(0.0, hop(2) - step_s)] * (ranks - 2), ends]
