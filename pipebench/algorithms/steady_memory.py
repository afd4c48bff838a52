"""How many micro-batches stages hold in a steady state, and how long a mini-batch takes where memory is short.

A stage holds a micro-batch from its forward to its backward: at least the way down to the last stage and back. In
a steady state in which a mini-batch of `count` micro-batches takes X, it so holds about way · count / X of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

CLOSE = 64
"""X is found to one part in so many of its bound from below."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A stage on a device. way_ns: down and back, times the micro-batches. most: micro-batches of a mini-batch.

    each_bytes: of one that is held. while_live_bytes: besides, while any is.
    """

    way_ns: int
    most: int
    each_bytes: int
    while_live_bytes: int

    def held(self, mini_batch_ns: int) -> int:
        """Micro-batches that it holds where a mini-batch takes so long; at least one."""
        return max(1, min(self.most, -(-self.way_ns // mini_batch_ns)))


def ways_down_ns(after: Sequence[Sequence[tuple[int, int]]], own_ns: Sequence[int]) -> list[int]:
    """For each stage the longest way from the start of its forward to the end of its backward.

    after: for each stage those behind it, with the ns of messages there and back. own_ns: forward and backward.
    """
    longest = list(own_ns)
    for _ in after:
        before = list(longest)
        for stage in reversed(range(len(after))):  # mostly stages stand before those that read from them
            behind = after[stage]
            longest[stage] = own_ns[stage] + max((ns + longest[other] for other, ns in behind), default=0)
        if longest == before:
            break
    return longest


def lack_bytes(holders: Sequence[Holder], room_bytes: int) -> int:
    """What a device lacks to hold one micro-batch of each of its stages."""
    return max(0, sum(each.each_bytes + each.while_live_bytes for each in holders) - room_bytes)


def least_mini_batch_ns(holders: Sequence[Holder], room_bytes: int, from_ns: int) -> int | None:
    """The least time of a mini-batch, `from_ns` or more, for which a device has room; None: for none."""
    if lack_bytes(holders, room_bytes):
        return None
    room = room_bytes - sum(each.while_live_bytes for each in holders)

    def fits(mini_batch_ns: int) -> bool:
        return sum(each.held(mini_batch_ns) * each.each_bytes for each in holders) <= room

    low = max(1, from_ns)
    if fits(low):
        return low
    high, close = max(low, *(each.way_ns for each in holders)), max(1, low // CLOSE)
    while high - low > close:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def steady_ns(devices: Sequence[Sequence[Holder]], room_bytes: Sequence[int], from_ns: int) -> int | None:
    """The least time of a mini-batch, `from_ns` or more, for which every device has room; None: for none."""
    found = [
        least_mini_batch_ns(holders, room, from_ns) for holders, room in zip(devices, room_bytes, strict=True)
    ]
    known = [ns for ns in found if ns is not None]
    return max(known) if len(known) == len(found) else None
