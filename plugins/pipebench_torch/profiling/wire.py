"""Messages between pairs of processes that stand for the links, timed alone and all at once."""

import time
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, combinations, islice, zip_longest
from math import ceil
from statistics import median
from typing import Any

from pipebench_torch.machine import Machine
from pipebench_torch.processes.job import Status

Pair = tuple[int, int]
MOST_PAIRS = 12
"""Of a level, or as many as there are nodes: all pairs grow with the square of the devices, each takes seconds."""


def pairs_within(processes: Sequence[int]) -> list[Pair]:
    """Ranks of one node, for each node in turn. Neighbours come first, so that every device is among them.

    processes: of each node; ranks follow one another.
    """
    every = [
        [(first + place, first + place + apart) for apart in range(1, count) for place in range(count - apart)]
        for first, count in zip(_firsts(processes), processes, strict=True)
    ]
    return _in_turn(every, len(processes))


def pairs_between(processes: Sequence[int]) -> list[Pair]:
    """Ranks of two nodes, for each two nodes in turn. Neighbours come first, so that every node is among them.

    Each pair has other devices at both ends.
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
    """Each rank of the first node with one of the second, to send at once; empty where there would be one pair."""
    count = min(processes[:2]) if len(processes) > 1 else 0
    return [(place, processes[0] + place) for place in range(count)] if count > 1 else []


def _firsts(processes: Sequence[int]) -> list[int]:
    return list(accumulate(processes, initial=0))[:-1]


def _in_turn(every: Sequence[Sequence[Pair]], nodes: int) -> list[Pair]:
    """The first of each list, the second of each, and so on."""
    taken: Iterator[Pair | None] = chain.from_iterable(zip_longest(*every))
    return list(islice((pair for pair in taken if pair is not None), max(MOST_PAIRS, nodes)))


FEWEST, MOST, ENOUGH_S = 2, 500, 0.2
"""Round trips of one size: as many as fit in ENOUGH_S, so that one stall does not decide a short one's median."""
STREAMS, STREAM_S, LONG_S = 3, 0.3, 5.0
"""Streams of all pairs at once, each of about STREAM_S; one that took LONG_S is enough."""


class Wire:
    """Sends there and back. All ranks call `alone`, `abreast` and `gather` in the same order."""

    def __init__(self, sizes: Sequence[int], rank: int, machine: Machine, status: Status) -> None:
        """sizes: bytes of the messages, ascending."""
        self.sizes, self.rank, self.machine, self.status = sizes, rank, machine, status

    def gather(self, own: Any, whom: str) -> list[Any]:
        """The values of all ranks, in every rank.

        whom: who is waited for, for the status.
        """
        import torch.distributed as dist

        self.status.say(f"waiting for {whom}")
        found: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(found, own)
        return found

    def alone(self, pair: Pair) -> tuple[float, ...]:
        """Seconds one way by size, while the others wait."""
        own: list[float] = []
        if self.rank in pair:
            self.status.say(f"measuring ranks {pair[0]} and {pair[1]}")
            self._round_trip(self._buffer(self.sizes[0]), pair)  # connects the two
            own = [self._one_way(pair, size) for size in self.sizes]
        return tuple(self.gather(own, f"ranks {pair[0]} and {pair[1]}")[pair[0]])

    def abreast(self, pairs: Sequence[Pair]) -> float:
        """Bytes/s that all pairs send one way at once, in messages of the largest size; 0 without pairs.

        It is all bytes over the time of the slowest pair, the median of some streams.
        """
        if not pairs:
            return 0.0
        own = next((pair for pair in pairs if self.rank in pair), None)
        size, whom, rates = self.sizes[-1], f"{len(pairs)} pairs that send at once", list[float]()
        if own:
            self._round_trip(self._buffer(size), own)
        alone = self.gather(own and self._round_trip(self._buffer(size), own), whom)
        count = max(FEWEST, min(MOST, ceil(2 * STREAM_S / max(alone[first] for first, _ in pairs))))
        for _ in range(STREAMS):
            if own:
                self.status.say(f"measuring {len(pairs)} pairs at once")
            took = self.gather(own and self._stream(own, size, count), whom)
            slowest = max(took[first] for first, _ in pairs)
            rates.append(len(pairs) * count * size / slowest)
            if slowest > LONG_S:
                break
        return float(median(rates))

    def _stream(self, pair: Pair, size: int, count: int) -> float:
        """Seconds until the second rank of a pair confirms all messages of the first."""
        buffer = self._buffer(size)
        start = time.perf_counter()
        for _ in range(count):
            if self.rank == pair[0]:
                self._send(buffer, pair[1])
            else:
                self._receive(buffer, pair[0])
        self._first_value(0, (pair[1], pair[0]))
        return time.perf_counter() - start

    def _one_way(self, pair: Pair, size: int) -> float:
        """Half of the median round trip."""
        buffer = self._buffer(size)
        first = self._round_trip(buffer, pair)
        count = self._first_value(max(FEWEST, min(MOST, int(ENOUGH_S / max(first, 1e-9)))), pair)
        return float(median(self._round_trip(buffer, pair) for _ in range(count))) / 2

    def _first_value(self, value: int, pair: Pair) -> int:
        """The first rank's value, in both ranks of a pair."""
        import torch

        box = torch.tensor([value], device=self.machine.device)
        if self.rank == pair[0]:
            self._send(box, pair[1])
        else:
            self._receive(box, pair[0])
        return int(box.item())

    def _buffer(self, size: int) -> Any:
        import torch

        return torch.zeros(size // 4, device=self.machine.device)

    def _round_trip(self, buffer: Any, pair: Pair) -> float:
        """Seconds from the first send to the answer."""
        self.machine.settle()
        start = time.perf_counter()
        if self.rank == pair[0]:
            self._send(buffer, pair[1])
            self._receive(buffer, pair[1])
        else:
            self._receive(buffer, pair[0])
            self._send(buffer, pair[0])
        self.machine.settle()
        return time.perf_counter() - start

    def _send(self, buffer: Any, target: int) -> None:
        import torch.distributed as dist

        dist.send(self.machine.sending(buffer), dst=target)

    def _receive(self, buffer: Any, source: int) -> None:
        """Into the buffer, or into host memory first."""
        import torch.distributed as dist

        through_host = self.machine.staged and self.machine.device.type != "cpu"
        room = buffer.new_empty(buffer.shape, device="cpu") if through_host else buffer
        dist.recv(room, src=source)
        if room is not buffer:
            buffer.copy_(room)
