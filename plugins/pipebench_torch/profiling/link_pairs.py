"""Which pairs of processes stand for the links of a cluster: inside a node, between nodes, and all at once."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, combinations, islice, zip_longest

Pair = tuple[int, int]
MOST_PAIRS = 12
"""Of a level, or as many as there are nodes: all pairs grow with the square of the devices, each takes seconds."""


def pairs_within(processes: Sequence[int]) -> list[Pair]:
    """Ranks of one node, in turn of each: neighbours first, so that every device is among them. processes: of each
    node, whose ranks follow one another.
    """
    every = [
        [(first + place, first + place + apart) for apart in range(1, count) for place in range(count - apart)]
        for first, count in zip(_firsts(processes), processes, strict=True)
    ]
    return _in_turn(every, len(processes))


def pairs_between(processes: Sequence[int]) -> list[Pair]:
    """Ranks of two nodes, in turn of each two: neighbours first, so that every node is among them; each time with
    other devices at both ends.
    """
    firsts = _firsts(processes)
    nodes = sorted(combinations(range(len(processes)), 2), key=lambda pair: pair[1] - pair[0])
    every = [
        [
            (firsts[a] + place, firsts[b] + (place + shift) % processes[b])
            for shift in range(processes[b])
            for place in range(processes[a])
        ]
        for a, b in nodes
    ]
    return _in_turn(every, len(processes))


def pairs_abreast(processes: Sequence[int]) -> list[Pair]:
    """Each rank of the first node with one of the second, to send at once; none where that is one pair."""
    count = min(processes[:2]) if len(processes) > 1 else 0
    return [(place, processes[0] + place) for place in range(count)] if count > 1 else []


def _firsts(processes: Sequence[int]) -> list[int]:
    return list(accumulate(processes, initial=0))[:-1]


def _in_turn(every: Sequence[Sequence[Pair]], nodes: int) -> list[Pair]:
    """The first of each list, the second of each, and so on."""
    taken: Iterator[Pair | None] = chain.from_iterable(zip_longest(*every))
    return list(islice((pair for pair in taken if pair is not None), max(MOST_PAIRS, nodes)))
