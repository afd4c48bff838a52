"""1F1B*: groups of a chain of stages, and the shortest period whose groups fit (MadPipe section 4.1).

A chain of n stages is seen as 2n - 1 items: stage, cut, stage, …, stage. An item's duration is its forward
plus its backward, in ns; a cut is a stage of its own on the link (MadPipe section 4.1, end).
"""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray


def oplus(delay: int, duration: int, period: int) -> int:
    """Delay behind an item of this duration, given the delay in front of it: x (+) y of MadPipe 4.2.2.

    x + y if that stays within the group of x (ends before the next multiple of the period), else the item
    opens a new group: period * ceil(x / period) + y. Monotone in both.
    """
    closed = -(-delay // period) * period
    return delay + duration if delay + duration <= closed else closed + duration


@kernel
def groups(items: IntArray, period: int) -> IntArray:
    """The group of each item, 1 for the last one; period must be at least the longest item.

    A group is filled from the end of the chain while its total stays within the period. A stage of group g
    has exactly g live micro-batches at its peak, the least that any pattern of this period needs (MadPipe,
    Proposition 1).
    """
    found = np.empty(len(items), np.int64)
    group, filled = 1, 0
    for i in range(len(items) - 1, -1, -1):
        if filled + items[i] <= period:
            filled += items[i]
        else:
            group += 1
            filled = items[i]
        found[i] = group
    return found


@kernel
def minimal_period(items: IntArray, most_live: IntArray) -> int:
    """The shortest period, in ns, at which stage i of the chain needs at most most_live[i] micro-batches.

    -1 when there is none, which means that some most_live is below 1. Groups only shrink when the period
    grows, so integer bisection between the longest item and the sum of all (where every group is 1) is
    exact; the result is the sum of some consecutive items, or 1 when every item is 0.
    """
    for live in most_live:
        if live < 1:
            return -1
    low, high = max(1, items.max()), max(1, items.sum())
    while low < high:
        period = (low + high) // 2
        found = groups(items, period)
        fits = True
        for stage in range(len(most_live)):
            if found[2 * stage] > most_live[stage]:
                fits = False
                break
        if fits:
            high = period
        else:
            low = period + 1
    return int(high)


def start_times(forward: IntArray, backward: IntArray, period: int) -> tuple[list[int], list[int]]:
    """When each item's forward and backward of micro-batch 0 start under 1F1B*, in ns from its first forward.

    forward, backward: durations of the items, shape (2n - 1,). Forwards run one behind the other. The
    backwards of group g run in reverse order, one behind the other, from (g - 1) periods after the end of
    the group's last forward.
    """
    group = groups(forward + backward, period)
    ends = np.cumsum(forward)
    backward_start = [0] * len(group)
    instant = 0
    for i in range(len(group) - 1, -1, -1):
        if i == len(group) - 1 or group[i] != group[i + 1]:
            instant = int(ends[i]) + (int(group[i]) - 1) * period
        backward_start[i] = instant
        instant += int(backward[i])
    return [int(end - length) for end, length in zip(ends, forward, strict=True)], backward_start
