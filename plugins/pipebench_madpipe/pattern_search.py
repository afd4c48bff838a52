"""Whether a periodic schedule exists at a period, by branch and bound on difference constraints (exact)."""

from functools import cache

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.pattern import PeriodicConstraints, busiest_ns

UNKNOWN = -(2**60)


@kernel
def close(pattern: PeriodicConstraints, period: int, distance: IntArray) -> bool:
    """Fill `distance`, shape (n, n), with all longest paths at this period; false when a cycle is positive."""
    count = len(pattern.duration)
    for a in range(count):
        for b in range(count):
            distance[a, b] = UNKNOWN if a != b else 0
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
    positive = False
    for a in range(count):
        positive |= distance[a, a] > 0
    return not positive


@kernel
def require(distance: IntArray, a: int, b: int, length: int) -> bool:
    """Add t[b] - t[a] >= length to a closed matrix; false on a contradiction, after which the matrix is void."""
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
def least_turns(duration: IntArray, distance: IntArray, period: int, a: int, b: int) -> int:
    """The least k of the pair, the whole periods that b lies behind a. -1 for an operation and itself."""
    return int(-(-(distance[a, b] + duration[b]) // period) - 1)


@kernel
def most_turns(duration: IntArray, distance: IntArray, period: int, a: int, b: int) -> int:
    """The largest k of the pair."""
    return int((-distance[b, a] - duration[a]) // period)


@kernel
def narrow(duration: IntArray, distance: IntArray, period: int, a: int, b: int, least: int, most: int) -> bool:
    """Keep k of the pair within least … most; false when the distances contradict that."""
    if least > most:
        return False
    if not require(distance, a, b, duration[a] + least * period):
        return False
    return require(distance, b, a, duration[b] - (most + 1) * period)


FOUND, NONE, GAVE_UP, DEEP = 1, 0, -1, 2
PERIODS = 8
"""How many periods may take all their nodes in one search."""
LEVELS = 8
"""Levels of the tree of branches that a search has room for at first."""


def pairs_of(pattern: PeriodicConstraints) -> IntArray:
    """Pairs of operations on one resource, shape (pairs, 3): a, b, and whether the device is shared.

    Pairs on shared devices come first. Two operations of no duration never overlap and make no pair.
    """
    shared = np.zeros(len(pattern.duration), np.int64)
    shared[pattern.lane_forward] = shared[pattern.lane_backward] = 1
    a, b = _two_of(len(pattern.duration))
    meet = (pattern.resource[a] == pattern.resource[b]) & (pattern.resource[a] >= 0)
    meet &= pattern.duration[a] + pattern.duration[b] > 0
    a, b = a[meet], b[meet]
    first = np.argsort(-shared[a], kind="stable")
    pairs = np.empty((len(a), 3), np.int64)
    pairs[:, 0], pairs[:, 1], pairs[:, 2] = a[first], b[first], shared[a][first]
    return pairs


@cache
def _two_of(count: int) -> tuple[IntArray, IntArray]:
    """All pairs of numbers below the count. Neighbours in a search are of one size, so they are kept."""
    a, b = np.triu_indices(count, 1)
    return a.astype(np.int64), b.astype(np.int64)


@kernel
def _live_range(
    pattern: PeriodicConstraints, distance: IntArray, period: int, stage: int, event: int
) -> tuple[int, int, int, int]:
    """Least and most k(F, event), least and most k(B, event). The live micro-batches are k(F) - k(B)."""
    forward, backward = pattern.lane_forward[stage], pattern.lane_backward[stage]
    if forward == event:
        low, high = 0, 0
    else:
        low = least_turns(pattern.duration, distance, period, forward, event)
        high = most_turns(pattern.duration, distance, period, forward, event)
    if backward == event:
        return low, high, -1, -1
    return (
        low,
        high,
        least_turns(pattern.duration, distance, period, backward, event),
        most_turns(pattern.duration, distance, period, backward, event),
    )


@kernel
def _memory(pattern: PeriodicConstraints, distance: IntArray, period: int) -> bool:
    """Narrow the pairs by memory at each event; false when even the fewest live micro-batches do not fit."""
    for e in range(len(pattern.event_lane)):
        lane, event, room = pattern.event_lane[e], pattern.event_operation[e], pattern.event_room[e]
        first, last = pattern.lane_start[lane], pattern.lane_start[lane + 1]
        for stage in range(first, last):
            low, _, _, high = _live_range(pattern, distance, period, stage, event)
            room -= max(0, low - high) * pattern.lane_each[stage]
        if room < 0:
            return False
        for stage in range(first, last):
            each = pattern.lane_each[stage]
            if each == 0:
                continue
            forward, backward = pattern.lane_forward[stage], pattern.lane_backward[stage]
            low, high, back_low, back_high = _live_range(pattern, distance, period, stage, event)
            most = max(0, low - back_high) + room // each
            if high > most + back_high and not narrow(
                pattern.duration, distance, period, forward, event, low, most + back_high
            ):
                return False
            if back_low < low - most and not narrow(
                pattern.duration, distance, period, backward, event, low - most, back_high
            ):
                return False
    return True


@kernel
def _sum(distance: IntArray) -> int:
    """Of all entries; numba takes longer to compile numpy's."""
    total = 0
    for a in range(len(distance)):
        for b in range(len(distance)):
            total += distance[a, b]
    return total


@kernel
def _propagate(pattern: PeriodicConstraints, pairs: IntArray, distance: IntArray, period: int) -> bool:
    """Narrow pairs and memory until nothing changes; false when no schedule is left."""
    while True:
        before = _sum(distance)
        for i in range(len(pairs)):
            a, b = pairs[i, 0], pairs[i, 1]
            least = least_turns(pattern.duration, distance, period, a, b)
            most = most_turns(pattern.duration, distance, period, a, b)
            if not narrow(pattern.duration, distance, period, a, b, least, most):
                return False
        if not _memory(pattern, distance, period):
            return False
        if _sum(distance) == before:
            return True


@kernel
def _choose(duration: IntArray, pairs: IntArray, distance: IntArray, period: int) -> tuple[int, int, int]:
    """The pair to branch on and its k; -1 when k is known for every pair."""
    best, best_least, best_most = -1, 0, 0
    for i in range(len(pairs)):
        if best >= 0 and pairs[i, 2] < pairs[best, 2]:
            break
        a, b = pairs[i, 0], pairs[i, 1]
        least = least_turns(duration, distance, period, a, b)
        most = most_turns(duration, distance, period, a, b)
        if most > least and (best < 0 or most - least < best_most - best_least):
            best, best_least, best_most = i, least, most
    return best, best_least, best_most


@kernel
def _copy(target: IntArray, source: IntArray) -> None:
    """`target[:] = source` of square matrices; numba takes longer to compile numpy's."""
    for a in range(len(source)):
        for b in range(len(source)):
            target[a, b] = source[a, b]


@kernel
def _branch(
    pattern: PeriodicConstraints,
    pairs: IntArray,
    period: int,
    most_nodes: int,
    distance: IntArray,
    stack: IntArray,
    chosen: IntArray,
    reached: IntArray,
) -> int:
    """Search on from where it is; a status, DEEP where the stack has no room for another level.

    stack, shape (levels, n, n): the distances before each pair that was branched on; chosen, shape (pairs + 1, 3):
    that pair, its next k and its last. reached: levels in use and nodes visited, 0 at the start.
    """
    if reached[1] == 0:
        reached[1] = 1
        if not close(pattern, period, distance) or not _propagate(pattern, pairs, distance, period):
            return NONE
    while True:
        pair, least, most = _choose(pattern.duration, pairs, distance, period)
        if pair < 0:
            return FOUND
        depth = reached[0]
        if depth == len(stack):
            return DEEP
        _copy(stack[depth], distance)
        chosen[depth, 0], chosen[depth, 1], chosen[depth, 2] = pair, least, most
        depth += 1
        while True:
            if depth == 0:
                return NONE
            pair, least, most = chosen[depth - 1, 0], chosen[depth - 1, 1], chosen[depth - 1, 2]
            if least > most:
                depth -= 1
                continue
            if reached[1] >= most_nodes:
                return GAVE_UP
            chosen[depth - 1, 1] = least + 1
            _copy(distance, stack[depth - 1])
            reached[1] += 1
            a, b = pairs[pair, 0], pairs[pair, 1]
            if narrow(pattern.duration, distance, period, a, b, least, least) and _propagate(
                pattern, pairs, distance, period
            ):
                break
        reached[0] = depth


def schedule_at(pattern: PeriodicConstraints, period: int, most_nodes: int) -> tuple[int, int, IntArray]:
    """Search for a schedule at one period. Returns a status, the nodes visited and the instants.

    The status is FOUND with the instants (n,), NONE when none is proven to exist, or GAVE_UP after `most_nodes`
    nodes.
    """
    nothing = np.zeros(0, np.int64)
    if busiest_ns(pattern) > period:
        return NONE, 0, nothing
    count, pairs = len(pattern.duration), pairs_of(pattern)
    # Arrays are made here: numba takes a second to compile what makes them.
    distance, stack = np.empty((count, count), np.int64), np.empty((LEVELS, count, count), np.int64)
    chosen, reached = np.empty((len(pairs) + 1, 3), np.int64), np.zeros(2, np.int64)
    while (status := _branch(pattern, pairs, period, most_nodes, distance, stack, chosen, reached)) == DEEP:
        stack = np.concatenate((stack, np.empty_like(stack)))
    return status, int(reached[1]), distance[0].copy() if status == FOUND else nothing


@kernel
def _fixed_order(
    pattern: PeriodicConstraints, pairs: IntArray, turns: IntArray, period: int, instant: IntArray
) -> bool:
    """Instants, from zeros, at this period when every pair keeps its k: longest paths (Bellman, Ford).

    False when this order does not run at this period.
    """
    for _ in range(len(pattern.duration) + 1):
        moved = False
        for i in range(len(pattern.arc_from)):
            a, b = pattern.arc_from[i], pattern.arc_to[i]
            reached = instant[a] + pattern.arc_ns[i] + pattern.arc_periods[i] * period
            if reached > instant[b]:
                instant[b] = reached
                moved = True
        for i in range(len(pairs)):
            a, b = pairs[i, 0], pairs[i, 1]
            reached = instant[a] + pattern.duration[a] + turns[i] * period
            if reached > instant[b]:
                instant[b] = reached
                moved = True
            reached = instant[b] + pattern.duration[b] - (turns[i] + 1) * period
            if reached > instant[a]:
                instant[a] = reached
                moved = True
        if not moved:
            return True
    return False


def tighten_order(
    pattern: PeriodicConstraints, pairs: IntArray, turns: IntArray, low: int, period: int
) -> tuple[int, IntArray]:
    """A short period in low … `period` at which this order runs, found by bisection, and its instants.

    turns: k of each pair.

    Instants are empty where the order does not even run at `period`.
    """
    busiest, count = busiest_ns(pattern), len(pattern.duration)
    instants = np.zeros(count, np.int64)
    if not _fixed_order(pattern, pairs, turns, period, instants):
        return period, instants[:0]
    while low < period:
        middle = (low + period) // 2
        moved = np.zeros(count, np.int64)
        if busiest <= middle and _fixed_order(pattern, pairs, turns, middle, moved):
            period = middle
            instants = moved
        else:
            low = middle + 1
    return period, instants


def tighten_period(
    pattern: PeriodicConstraints, instants: IntArray, low: int, period: int
) -> tuple[int, IntArray]:
    """The same as tighten_order, for the order that these instants have at `period`."""
    pairs = pairs_of(pattern)
    a, b = pairs[:, 0], pairs[:, 1]
    turns = (instants[b] - instants[a] - pattern.duration[a]) // period
    return tighten_order(pattern, pairs, turns, low, period)


def shortest_pattern(
    pattern: PeriodicConstraints, low: int, below: int, most_nodes: int
) -> tuple[int, int, int, IntArray]:
    """The shortest period in low … below - 1 at which a schedule exists.

    most_nodes: limit for each period that is tried; PERIODS times as many for all of them.

    Returns the period (-1: none found), a proven lower bound on it, the nodes, and the instants (n,). The bound
    equals the period where that is proven shortest. A period at which the search gives up counts as not found, not
    as impossible; when all nodes are spent, the best so far is returned. A schedule at one period exists at every
    longer one (stretch all instants), so the bisection is exact unless the search gives up.
    """
    best = -1
    instants = np.zeros(0, np.int64)
    proven = low
    nodes = 0
    high = below
    target = low
    while low < high:
        status, visited, found = schedule_at(pattern, target, min(most_nodes, PERIODS * most_nodes - nodes))
        nodes += visited
        if nodes >= PERIODS * most_nodes and best >= 0 and status != FOUND:
            break
        if status == FOUND:
            best, instants = tighten_period(pattern, found, low, target)
            high = best
        else:
            low = target + 1
            if status == NONE:
                proven = low
        target = (low + high - 1) // 2
    return best, proven, nodes, instants
