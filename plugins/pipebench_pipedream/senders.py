"""What a state sends: the units whose output counts at a cut, and which states lie inside which."""

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

BoolArray = NDArray[np.bool_]


@kernel
def inside(words: NDArray[np.uint64]) -> BoolArray:  # pragma: no cover - compiled
    """For bit sets as rows of words, ascending by size: whether the first is a proper part of the second."""
    n, width = words.shape
    made = np.zeros((n, n), dtype=np.bool_)
    for j in range(n):
        for k in range(j):
            part = True
            for word in range(width):
                if words[k, word] & ~words[j, word]:
                    part = False
                    break
            made[k, j] = part
    return made


@kernel
def cut_units(holds: BoolArray, first: IntArray, after: IntArray) -> BoolArray:  # pragma: no cover - compiled
    """Units of each state that something outside reads; successors of unit u: after[first[u]:first[u + 1]]."""
    made = np.zeros(holds.shape, dtype=np.bool_)
    for state in range(holds.shape[0]):
        for unit in range(holds.shape[1]):
            if holds[state, unit]:
                for edge in range(first[unit], first[unit + 1]):
                    if not holds[state, after[edge]]:
                        made[state, unit] = True
                        break
    return made


@kernel
def augmented_units(  # pragma: no cover - compiled
    holds: BoolArray, ancestors: BoolArray, first: IntArray, after: IntArray
) -> BoolArray:
    """The antichain of each state (units without a successor in it), and each ancestor of a member with a
    successor that is neither that member nor an ancestor of it. ancestors[u, a]: whether a leads to u.
    """
    n = ancestors.shape[0]
    feeds = np.zeros((n, n), dtype=np.bool_)
    for member in range(n):
        for unit in range(n):
            if ancestors[member, unit]:
                for edge in range(first[unit], first[unit + 1]):
                    other = after[edge]
                    if other != member and not ancestors[member, other]:
                        feeds[member, unit] = True
                        break
    made = np.zeros(holds.shape, dtype=np.bool_)
    for state in range(holds.shape[0]):
        for member in range(n):
            if not holds[state, member]:
                continue
            largest = True
            for edge in range(first[member], first[member + 1]):
                if holds[state, after[edge]]:
                    largest = False
                    break
            if largest:
                made[state, member] = True
                for unit in range(n):
                    if feeds[member, unit]:
                        made[state, unit] = True
    return made
