"""Kernels compiled in parts, side by side: together they are most of what a first search would wait for."""

import numpy as np

from pipebench.algorithms.chains.one_f_one_b_star import groups
from pipebench_madpipe.allocation import Estimate
from pipebench_madpipe.labels import reach
from pipebench_madpipe.moves import KINDS, next_move
from pipebench_madpipe.pattern import PeriodicConstraints
from pipebench_madpipe.pattern_search import shortest_pattern
from pipebench_madpipe.stage_table import RunTable

SHORTEST = RunTable(np.zeros((9, 2), np.int64), np.zeros((2, 2, 5), np.int64))
"""A chain of one layer that takes no time."""
BOUNDS, SPECIAL = np.array([0, 1], np.int64), np.zeros(1, np.bool_)
ESTIMATE = Estimate(tight=True, in_place=True)


def compile_patterns() -> None:
    """Those of the search for a periodic schedule."""
    nothing = np.zeros(0, np.int64)
    one = np.ones(1, np.int64)
    pattern = PeriodicConstraints(one, one - 1, *(nothing,) * 4, one - 1, *(nothing,) * 6)
    shortest_pattern(pattern, 1, 4, 1)


def compile_allocations() -> None:
    """Those of the searches for allocations, by labels and by moves; both price stages by the same kernels.

    Only long chains and tight memory reach the local search.
    """
    reach(SHORTEST, 1, 1, 1, 1, ESTIMATE, 1, 1)
    next_move(SHORTEST, 0, 0, (0, 0), BOUNDS, SPECIAL, (KINDS, 0, 0), ESTIMATE)
    groups(BOUNDS, 1)
