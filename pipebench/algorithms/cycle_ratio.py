"""The maximum cycle ratio of a graph: the exact pace of a system of maxima and sums."""

from fractions import Fraction

import numpy as np

from pipebench.costs.quantise import IntArray


def maximum_cycle_ratio(tail: IntArray, head: IntArray, weight: IntArray, tokens: IntArray) -> Fraction:
    """The largest sum of weights / sum of tokens over all cycles; 0 when no cycle has a weight above zero.

    Arcs from tail to head, all arrays of shape (arcs,); nodes are numbered from 0. Tokens of an arc may be
    negative, those of a cycle must add up to at least 1. Method: while some cycle is longer than its tokens at
    the best ratio so far, take its ratio (Burns 1991; Dasdan 2004, section 4.4). Integers throughout.
    """
    order = np.argsort(head, kind="stable")
    tail, head, weight, tokens = tail[order], head[order], weight[order], tokens[order]
    ratio = Fraction(0)
    while True:
        length = weight * ratio.denominator - tokens * ratio.numerator
        cycle = _positive_cycle(tail, head, length)
        if cycle is None:
            return ratio
        ratio = Fraction(int(weight[cycle].sum()), int(tokens[cycle].sum()))


def _positive_cycle(tail: IntArray, head: IntArray, length: IntArray) -> list[int] | None:
    """The arcs of a cycle of positive length, or None; arcs sorted by head. Longest paths, Bellman and Ford."""
    nodes = int(max(tail.max(initial=-1), head.max(initial=-1))) + 1
    first = np.flatnonzero(np.diff(head, prepend=-1))
    reached = head[first]
    distance = np.zeros(nodes, np.int64)
    parent = np.full(nodes, -1, np.int64)
    for number in range(1, nodes + 1):
        candidate = distance[tail] + length
        best = np.maximum.reduceat(candidate, first) if len(first) else candidate
        longer = best > distance[reached]
        if not longer.any():
            return None
        # Of the arcs into a node the first one that is as long as the best.
        arcs = np.flatnonzero(candidate == np.repeat(best, np.diff(first, append=len(head))))
        chosen = arcs[np.flatnonzero(np.diff(head[arcs], prepend=-1))]
        parent[reached[longer]] = chosen[longer]
        distance[reached[longer]] = best[longer]
        if number & (number - 1) == 0 or number == nodes:
            cycle = _cycle_of_parents(tail, parent)
            if cycle is not None:
                return cycle
    raise AssertionError("longest paths grow for ever without a cycle")


def _cycle_of_parents(tail: IntArray, parent: IntArray) -> list[int] | None:
    """The arcs of a cycle among the arcs through which nodes were last reached."""
    seen = np.zeros(len(parent), np.int64)
    for start in range(len(parent)):
        node = start
        while parent[node] >= 0 and seen[node] == 0:
            seen[node] = start + 1
            node = int(tail[parent[node]])
        if parent[node] >= 0 and seen[node] == start + 1:
            arcs = [int(parent[node])]
            while int(tail[arcs[-1]]) != node:
                arcs.append(int(parent[tail[arcs[-1]]]))
            return arcs
    return None
