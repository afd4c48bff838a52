"""Sums over what lies between two downsets, one inside the other, from sums over each.

A stage is the difference of two downsets. Sums over its nodes are differences; an edge that leaves or enters it
is one that either downset cuts, except those that both cut, which are looked at one by one (they are few).
"""

import numpy as np

from pipebench.algorithms.downset_table import Words
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray


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
