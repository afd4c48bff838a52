"""Long chains with fewer places to cut: spread over the chain, then close to where an allocation cuts."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pipebench.algorithms.stage_table import CUT_HELD, WORK, StageTable
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.label_search import Class

SHARES, FEW_SHARES = 48, 16
NEAR = 4
"""Cuts on either side of one that is refined."""


def spread(of: Class, also: Iterable[int]) -> Class:
    """Only the cuts `also`, and of each share of the work the one with the smallest buffers."""
    return _restricted(of, {*also, *_shares(of.table, SHARES)})


def around(of: Class, bounds: Iterable[int]) -> Class:
    """Only cuts close to `bounds`, and a few spread over the chain."""
    close = {bound + by for bound in bounds for by in range(-NEAR, NEAR + 1)}
    return _restricted(of, close | _shares(of.table, FEW_SHARES))


def restricted_table(table: StageTable, cuts: IntArray) -> StageTable:
    """The table of the same chain cut only at `cuts`, which ascend from 0 to L: all costs stay exact."""
    return StageTable(
        np.ascontiguousarray(table.layers[:, cuts]), np.ascontiguousarray(table.stages[np.ix_(cuts, cuts)])
    )


def _restricted(of: Class, wanted: set[int]) -> Class:
    cuts = np.array(sorted({0, of.length} | {cut for cut in wanted if 0 < cut < of.length}), np.int64)
    return replace(of, table=restricted_table(of.table, cuts), cuts=cuts)


def _shares(table: StageTable, count: int) -> set[int]:
    """The cut with the smallest buffers in each of `count` equal shares of the work."""
    work = table.layers[WORK]
    share = work[1:-1] * count // max(1, int(work[-1]))
    best: dict[int, int] = {}
    for cut, number in enumerate(map(int, share), 1):
        if number not in best or table.layers[CUT_HELD][cut] < table.layers[CUT_HELD][best[number]]:
            best[number] = cut
    return set(best.values())
