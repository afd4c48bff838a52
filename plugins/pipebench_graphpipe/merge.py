"""Parts that run side by side share the devices; the deeper one decides the depth in front of them."""

import numpy as np

from pipebench.algorithms.assign import assign
from pipebench.algorithms.chain_dp import UNREACHED, Depths
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray


@kernel
def merge(many: Depths, one: Depths) -> Depths:
    """For each row of `many`, (rows, devices + 1): the least larger depth over all splits of the devices."""
    rows, width = many.shape
    merged = np.full((rows, width), UNREACHED, np.int32)
    for row in range(rows):
        for devices in range(width):
            for left in range(devices + 1):
                depth = max(many[row, left], one[devices - left])
                merged[row, devices] = min(merged[row, devices], depth)
    return merged


@kernel
def side_by_side(branches: Depths, behind: int, rows: IntArray, limits: Depths, replicas: Depths) -> Depths:
    """Depths of the first e branches of a list, e = 0 … w, shape (w + 1, devices + 1).

    branches: depth of each branch on its own, (w, devices + 1), with `behind` stages behind it. A run of
    branches a … e - 1 as one stage has the limit limits[rows[a] + e]. Source: GraphPipe section 5, parallel
    decomposition, on n branches at once.
    """
    count, width = branches.shape
    depths = np.full((count + 1, width), UNREACHED, np.int32)
    depths[0] = 0
    for end in range(1, count + 1):
        assign(depths[end], merge(branches[end - 1 : end], depths[end - 1])[0])
        for first in range(end - 1):
            for choice in range(replicas.shape[0]):
                if behind + 1 > limits[rows[first] + end, choice]:
                    continue
                used = replicas[choice]
                for devices in range(used, width):
                    depth = max(behind + 1, depths[first, devices - used])
                    depths[end, devices] = min(depths[end, devices], depth)
    return depths
