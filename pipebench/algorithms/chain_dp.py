"""Chain DP: the fewest stages from each position to the end, with replicas, under a limit on each stage.

The value of a position and a number of devices is the depth of the stage that starts there, counted from the
end: how many stages a micro-batch still has to pass. A stage of depth s keeps s micro-batches in flight under
1F1B, so the limit of a stage is the largest depth at which it fits (0: never), and a smaller depth behind a
position is never worse. Bisection on a target period turns this into the smallest bottleneck.
Source: GraphPipe section 5 (DP subproblem: minimal in-flight at the source), restricted to a chain.
"""

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

Depths = NDArray[np.int32]
UNREACHED = 1 << 29
"""Depth where no stages fit; larger than any limit."""
NO_LIMIT = 1 << 28
"""Limit of a stage that fits at every depth."""


@kernel
def extend(depths: Depths, reached: Depths, first: int, row: int, limits: Depths, replicas: Depths) -> int:
    """Lower `depths` by one more stage in front of what the rows `first`, first + 1, … of `reached` stand for.

    depths: (devices + 1,), at most so many devices used. reached: (ends, devices + 1). limits: (stages,
    replica choices); the stage that ends before row e is number row + e. Returns transitions tried.
    """
    tried = 0
    for end in range(first, reached.shape[0]):
        for choice in range(replicas.shape[0]):
            limit = limits[row + end, choice]
            if limit <= 0:
                continue
            used = replicas[choice]
            for devices in range(used, depths.shape[0]):
                depth = reached[end, devices - used] + 1
                tried += 1
                if depth <= limit and depth < depths[devices]:
                    depths[devices] = depth
    return tried


@kernel
def extend_chain(
    reached: Depths, ends: IntArray, low: int, high: int, rows: IntArray, limits: Depths, replicas: Depths
) -> int:
    """Fill reached[ends[i]] for positions i = high - 1 down to low, from the rows behind each.

    ends: the row of `reached` for each position, ascending; rows between two positions are other ways to end
    a stage. rows: for each position the `row` of `extend`. Returns transitions tried.
    """
    tried = 0
    for position in range(high - 1, low - 1, -1):
        tried += extend(reached[ends[position]], reached, ends[position + 1], rows[position], limits, replicas)
    return tried


def chain_depths(limits: Depths, replicas: Depths, devices: int, behind: int = 0) -> Depths:
    """Depths of a plain chain of n operators, shape (n + 1, devices + 1).

    limits: (n, n + 1, replica choices), the largest depth of a stage that holds operators i … e - 1.
    behind: depth of what follows the chain.
    """
    count, _, choices = limits.shape
    reached = np.full((count + 1, devices + 1), UNREACHED, np.int32)
    reached[count] = behind
    rows = np.arange(count, dtype=np.int64) * (count + 1)
    flat = np.ascontiguousarray(limits.reshape(-1, choices), np.int32)
    extend_chain(reached, np.arange(count + 1, dtype=np.int64), 0, count, rows, flat, replicas)
    return reached


def chain_stages(depths: Depths, limits: Depths, replicas: Depths) -> list[tuple[int, int, int]] | None:
    """The stages (first operator, end, replicas) behind depths[0, -1]; None where nothing fits."""
    at, devices = 0, depths.shape[1] - 1
    if depths[at, devices] >= UNREACHED:
        return None
    stages = []
    while at < len(depths) - 1:
        at, devices, stage = _stage(depths, limits, replicas, at, devices)
        stages.append(stage)
    return stages


def _stage(
    depths: Depths, limits: Depths, replicas: Depths, at: int, devices: int
) -> tuple[int, int, tuple[int, int, int]]:
    depth = depths[at, devices]
    for end in range(at + 1, len(depths)):
        for choice, used in enumerate(map(int, replicas)):
            fits = used <= devices and depth <= limits[at, end, choice]
            if fits and depths[end, devices - used] + 1 == depth:
                return end, devices - used, (at, end, used)
    raise AssertionError("depths and limits do not belong together")
