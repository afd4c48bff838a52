"""Spans of time as sorted, disjoint pairs of ns: merged, taken from each other, and summed inside a window."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

Span = tuple[int, int]


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The time that any of them covers, as disjoint spans in order; those that touch become one."""
    made: list[Span] = []
    for start, end in sorted(spans):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((start, end))
    return tuple(made)


def subtract_spans(spans: Sequence[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """The time of `spans` that `others` do not cover. Both merged."""
    left: list[Span] = []
    at = 0
    for start, end in spans:
        while at < len(others) and others[at][1] <= start:
            at += 1
        free, here = start, at
        while here < len(others) and others[here][0] < end:
            if others[here][0] > free:
                left.append((free, others[here][0]))
            free = max(free, others[here][1])
            here += 1
        if free < end:
            left.append((free, end))
        at = max(at, here - 1)
    return tuple(left)


class SpanSums:
    """Merged spans of which the time inside any window is found in logarithmic time."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]
        self._before = [0, *accumulate(end - start for start, end in spans)]

    def within(self, start: int, end: int) -> int:
        """ns of the spans between two instants."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first >= last:
            return 0
        whole = self._before[last] - self._before[first]
        return whole - max(0, start - self._starts[first]) - max(0, self._ends[last - 1] - end)
