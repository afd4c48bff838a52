"""Which pairs of processes stand for the links of a cluster: inside a node, between nodes, and all at once."""

from collections.abc import Sequence
from itertools import accumulate, combinations

Pair = tuple[int, int]
MOST_PAIRS = 12
"""Of a level: their number grows with the square of that of the devices, each takes a second or two."""


def node_of_rank(processes: Sequence[int]) -> list[int]:
    """The node of every rank. processes: of each node, whose ranks follow one another."""
    return [node for node, count in enumerate(processes) for _ in range(count)]


def pairs_within(processes: Sequence[int]) -> list[Pair]:
    """Ranks of one node."""
    node = node_of_rank(processes)
    return _spread([(a, b) for a, b in combinations(range(len(node)), 2) if node[a] == node[b]])


def pairs_between(processes: Sequence[int]) -> list[Pair]:
    """Ranks of two nodes."""
    node = node_of_rank(processes)
    return _spread([(a, b) for a, b in combinations(range(len(node)), 2) if node[a] != node[b]])


def pairs_abreast(processes: Sequence[int]) -> list[Pair]:
    """Each rank of the first node with one of the second, to send at once; none where that is one pair."""
    firsts = [0, *accumulate(processes)]
    count = min(processes[:2]) if len(processes) > 1 else 0
    return [(firsts[0] + place, firsts[1] + place) for place in range(count)] if count > 1 else []


def _spread(pairs: list[Pair]) -> list[Pair]:
    """At most MOST_PAIRS of them, evenly chosen."""
    if len(pairs) <= MOST_PAIRS:
        return pairs
    return [pairs[number * len(pairs) // MOST_PAIRS] for number in range(MOST_PAIRS)]
