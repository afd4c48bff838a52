"""Difference constraints between instants: all longest paths, kept closed as constraints are added.

distance[a, b] is the most that is known of t[b] - t[a] from below. Two operations on one resource, repeated every
T, do not overlap when t[b] - t[a] lies in [d_a + k T, (k + 1) T - d_b] for an integer k; the distances limit k.
"""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.pattern import Pattern
from pipebench.costs.quantise import IntArray

UNKNOWN = -(2**60)


@kernel
def close(pattern: Pattern, period: int) -> tuple[bool, IntArray]:
    """All longest paths over the arcs at this period, shape (n, n); false when a cycle is positive."""
    count = len(pattern.duration)
    distance = np.full((count, count), UNKNOWN, np.int64)
    for a in range(count):
        distance[a, a] = 0
    for i in range(len(pattern.arc_from)):
        length = pattern.arc_ns[i] + pattern.arc_periods[i] * period
        a, b = pattern.arc_from[i], pattern.arc_to[i]
        distance[a, b] = max(distance[a, b], length)
    for middle in range(count):
        for a in range(count):
            there = distance[a, middle]
            if there == UNKNOWN:
                continue
            for b in range(count):
                if distance[middle, b] != UNKNOWN:
                    distance[a, b] = max(distance[a, b], there + distance[middle, b])
    for a in range(count):
        if distance[a, a] > 0:
            return False, distance
    return True, distance


@kernel
def require(distance: IntArray, a: int, b: int, length: int) -> bool:
    """Add t[b] - t[a] >= length to a closed matrix; false when that contradicts it (the matrix is then void)."""
    if length <= distance[a, b]:
        return True
    if distance[b, a] + length > 0:
        return False
    count = len(distance)
    for i in range(count):
        if distance[i, a] == UNKNOWN:
            continue
        there = distance[i, a] + length
        if there <= distance[i, b]:
            continue
        for j in range(count):
            if distance[b, j] != UNKNOWN:
                distance[i, j] = max(distance[i, j], there + distance[b, j])
    return True


@kernel
def least_turns(pattern: Pattern, distance: IntArray, period: int, a: int, b: int) -> int:
    """The least k of the pair: whole periods that b may lie behind a. -1 for an operation and itself."""
    return int(-(-(distance[a, b] + pattern.duration[b]) // period) - 1)


@kernel
def most_turns(pattern: Pattern, distance: IntArray, period: int, a: int, b: int) -> int:
    """The largest k of the pair."""
    return int((-distance[b, a] - pattern.duration[a]) // period)


@kernel
def narrow(pattern: Pattern, distance: IntArray, period: int, a: int, b: int, least: int, most: int) -> bool:
    """Hold the pair's k within least … most; false when that contradicts the distances."""
    if least > most:
        return False
    if not require(distance, a, b, pattern.duration[a] + least * period):
        return False
    return require(distance, b, a, pattern.duration[b] - (most + 1) * period)
