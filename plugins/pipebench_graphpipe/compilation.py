"""The planner's kernels compiled, beside those of other planners, before the first search."""

import numpy as np

from pipebench_graphpipe.chain_dp import chain_depths, merge, side_by_side
from pipebench_graphpipe.program import GraphArrays, ProgramArrays, Values, measure


def compile_depths() -> None:
    """Those of the chain DP and of what stages cost, on one operator that costs nothing."""
    nothing, table = np.zeros(0, np.int64), np.zeros((1, 1), np.int64)
    one, row = np.ones(1, np.int32), np.zeros((1, 2), np.int32)
    graph = GraphArrays(*(nothing,) * 8, parameter_count=0)
    measure(ProgramArrays(*(nothing,) * 10), graph, Values(*(table,) * 4, workspace=nothing), 1)
    chain_depths(np.zeros((1, 2, 1), np.int32), one, 1)
    merge(row, row[0])
    side_by_side(row, 0, np.zeros(1, np.int64), row.T.copy(), one)
