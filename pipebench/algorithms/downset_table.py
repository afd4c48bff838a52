"""All downsets of a graph as rows of 64-bit words, with sums over them and over what lies between two of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import assign, kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.topology import topological_order

Words = NDArray[np.uint64]


def downset_table(successors: Sequence[Sequence[int]], limit: int, hint: str | None = None) -> Words:
    """Every downset once, shape (downsets, words), by size; the empty set first, the whole graph last.

    The nodes of a downset in topological order are a sequence whose every beginning is a downset, so a depth
    first walk over such sequences meets each downset once and needs no memory of those it met.

    limit: downsets at most. Raises UnsupportedProblem with the count so far and `hint` when there are more;
    InvalidValue when the graph has a cycle.
    """
    nodes = len(successors)
    order = np.array(topological_order(successors, [f"node {node}" for node in range(nodes)]), np.int64)
    predecessors: list[list[int]] = [[] for _ in successors]
    for node, after in enumerate(successors):
        for successor in after:
            predecessors[successor].append(node)
    rows, count = walk(order, node_sets(predecessors, nodes), limit)
    if count > limit:
        raise UnsupportedProblem(
            f"the graph has more than {limit} downsets ({count} counted so far, of {nodes} operators)", hint
        )
    rows = rows[:count]
    sizes = downset_sums(rows, np.ones((1, nodes)))[0]
    return np.ascontiguousarray(rows[np.argsort(sizes, kind="stable")])


def node_sets(sets: Sequence[Sequence[int]], nodes: int) -> Words:
    """Sets of nodes as rows of words."""
    rows = np.zeros((len(sets), max(1, -(-nodes // 64))), np.uint64)
    for row, members in enumerate(sets):
        for node in members:
            rows[row, node // 64] |= np.uint64(1 << node % 64)
    return rows


@kernel
def walk(order: IntArray, before: Words, limit: int) -> tuple[Words, int]:
    """The rows of `downset_table` unsorted and their number; stops at limit + 1. before: predecessors."""
    nodes, words = before.shape
    rows = np.zeros((min(limit + 1, 1024), words), np.uint64)
    now = np.zeros(words, np.uint64)
    held = np.zeros(nodes + 1, np.int64)
    depth = place = 0
    count = 1
    while count <= limit:
        while place < nodes:
            ready = True
            for word in range(words):
                if before[order[place], word] & ~now[word]:
                    ready = False
                    break
            if ready:
                break
            place += 1
        if place == nodes:
            if depth == 0:
                break
            depth -= 1
            place = held[depth]
            now[order[place] // 64] ^= np.uint64(1) << np.uint64(order[place] % 64)
        else:
            now[order[place] // 64] |= np.uint64(1) << np.uint64(order[place] % 64)
            held[depth] = place
            depth += 1
            if count == rows.shape[0]:
                larger = np.zeros((2 * count, words), np.uint64)
                assign(larger, rows)
                rows = larger
            assign(rows[count], now)
            count += 1
        place += 1
    return rows, count


@kernel
def downset_sums(rows: Words, values: FloatArray) -> FloatArray:
    """For each row of `values` (sums, nodes) and each downset the sum over its nodes, shape (sums, downsets).

    Nodes are added in ascending order, so that a superset's sum of values that are not negative is not smaller.
    """
    kinds, nodes = values.shape
    sums = np.zeros((kinds, rows.shape[0]))
    for row in range(rows.shape[0]):
        for node in range(nodes):
            if rows[row, node // 64] >> np.uint64(node % 64) & np.uint64(1):
                for kind in range(kinds):
                    sums[kind, row] += values[kind, node]
    return sums


@kernel
def cut_edges(rows: Words, edges: Words) -> Words:
    """For each downset the set of (hyper)edges that it holds in part, shape (downsets, words of edges).

    edges: node sets, shape (edges, words).
    """
    cut = np.zeros((rows.shape[0], max(1, (edges.shape[0] + 63) // 64)), np.uint64)
    for row in range(rows.shape[0]):
        for edge in range(edges.shape[0]):
            some = rest = False
            for word in range(rows.shape[1]):
                some = some or (edges[edge, word] & rows[row, word]) != 0
                rest = rest or (edges[edge, word] & ~rows[row, word]) != 0
            if some and rest:
                cut[row, edge // 64] |= np.uint64(1) << np.uint64(edge % 64)
    return cut


@kernel
def contains(rows: Words, large: int, small: int) -> bool:
    """Whether one downset holds all of another."""
    inside = True
    for word in range(rows.shape[1]):
        inside = inside and not rows[small, word] & ~rows[large, word]
    return inside


@kernel
def cut_by_both(cut: Words, values: FloatArray, large: int, small: int) -> float:
    """The sum of `values` (edges,) over edges that both downsets cut. cut: of downset_table.cut_edges."""
    total = 0.0
    for word in range(cut.shape[1]):
        common = cut[large, word] & cut[small, word]
        edge = word * 64
        while common:
            if common & np.uint64(1):
                total += values[edge]
            common >>= np.uint64(1)
            edge += 1
    return total


@kernel
def boundary(
    rows: Words, cut: Words, edges: Words, values: FloatArray, cut_sums: FloatArray, large: int, small: int
) -> float:
    """The sum of `values` over hyperedges with nodes both between the downsets and elsewhere.

    edges: node sets (edges, words). cut_sums: the sum over those that each downset holds in part. One that
    both hold in part has nodes outside; it counts once where it has nodes between, else not at all.
    """
    total = cut_sums[large] + cut_sums[small]
    for word in range(cut.shape[1]):
        common = cut[large, word] & cut[small, word]
        edge = word * 64
        while common:
            if common & np.uint64(1):
                total -= values[edge]
                between = False
                for part in range(rows.shape[1]):
                    if edges[edge, part] & rows[large, part] & ~rows[small, part]:
                        between = True
                        break
                if not between:
                    total -= values[edge]
            common >>= np.uint64(1)
            edge += 1
    return float(total)
