"""Kernels of the chain DP: the fewest stages from each position to the end, also of parts side by side."""

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


@kernel
def _merge(merged: Depths, many: Depths, one: Depths) -> None:
    """Lower `merged` to what `merge` returns."""
    rows, width = many.shape
    for row in range(rows):
        for devices in range(width):
            for left in range(devices + 1):
                depth = max(many[row, left], one[devices - left])
                merged[row, devices] = min(merged[row, devices], depth)


def merge(many: Depths, one: Depths) -> Depths:
    """For each row of `many`, (rows, devices + 1): the least larger depth over all splits of the devices."""
    merged = np.full(many.shape, UNREACHED, np.int32)
    _merge(merged, many, one)
    return merged


def side_by_side(branches: Depths, behind: int, rows: IntArray, limits: Depths, replicas: Depths) -> Depths:
    """Depths of the first e branches of a list, e = 0 … w, shape (w + 1, devices + 1).

    branches: depth of each branch on its own, (w, devices + 1), with `behind` stages behind it. A run of
    branches a … e - 1 as one stage has the limit limits[rows[a] + e]. Source: GraphPipe section 5, parallel
    decomposition, on n branches at once.
    """
    count, width = branches.shape
    depths = np.full((count + 1, width), UNREACHED, np.int32)
    depths[0] = 0
    _side_by_side(depths, branches, behind, rows, limits, replicas)
    return depths


@kernel
def _side_by_side(
    depths: Depths, branches: Depths, behind: int, rows: IntArray, limits: Depths, replicas: Depths
) -> None:
    """The loops of side_by_side."""
    count, width = branches.shape
    for end in range(1, count + 1):
        _merge(depths[end : end + 1], branches[end - 1 : end], depths[end - 1])
        for first in range(end - 1):
            for choice in range(replicas.shape[0]):
                if behind + 1 > limits[rows[first] + end, choice]:
                    continue
                used = replicas[choice]
                for devices in range(used, width):
                    depth = max(behind + 1, depths[first, devices - used])
                    depths[end, devices] = min(depths[end, devices], depth)
