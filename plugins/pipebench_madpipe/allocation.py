"""MadPipe-DP on normal processors: the least load of an allocation whose memory fits at a target period."""

import numpy as np

from pipebench.algorithms.chain import ChainArrays
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray


@kernel
def madpipe_dp(
    chain: ChainArrays, target: int, least: int, most: int, memory: int, below: int
) -> tuple[int, int, IntArray]:
    """MadPipe-DP(target) of MadPipe section 4.2.2, without the special processor and without a grid.

    Returns the load (the longest stage or transfer, ns) of an allocation to least … most processors that is
    least among those whose memory, in groups formed at the target period, fits in `memory` bytes; the number
    of labels made; and the stage bounds, shape (stages + 1,). Only loads under `below` count; without one
    the load is `below` and there are no bounds.

    The paper's T(l, p, V) is unrolled from the last layer: a label (V, load) of bucket (j, k) stands for
    layers k … L-1 on j processors with the delay V in front of layer k. A bucket keeps its Pareto front as a
    list linked by ascending V, which is exact because all transitions are monotone in both.
    """
    length = len(chain.work) - 1
    head = np.full((most + 1, length + 1), -1, np.int64)
    label = np.zeros((1024, 5), np.int64)  # delay, load, next label of the bucket, parent label, layer
    made = 1
    label[0] = np.array([0, 0, -1, -1, length])
    head[0, length] = 0
    best, best_label = below, -1
    for j in range(most):
        left = most - j - 1
        for end in range(length, 0, -1):
            parent = head[j, end]
            while parent >= 0:
                delay, load = label[parent, 0], label[parent, 1]
                group_before = -(-delay // target)
                workspace = 0
                weights = 0
                for first in range(end - 1, -1, -1):
                    work = chain.work[end] - chain.work[first]
                    if max(work, load) >= best:
                        break
                    workspace = max(workspace, chain.workspace[first])
                    weights += chain.held[first + 1] - chain.held[first]
                    for entry in range(chain.shared_start[first], chain.shared_start[first + 1]):
                        if chain.shared_next[entry] < end:
                            weights -= chain.shared_bytes[entry]
                    saved = chain.saved[end] - chain.saved[first]
                    if weights + workspace + saved > memory:
                        break
                    if chain.work[first] > left * (best - 1):
                        continue
                    group = max(1, -(-(delay + work) // target))
                    total = weights + workspace + chain.cut_held[first] + chain.cut_held[end]
                    if chain.recompute:
                        total += saved + group * chain.inputs[first]
                    else:
                        total += group * saved
                    transfer = chain.cut_ns[chain.hop[j], first] if first > 0 else 0
                    value = max(load, work, transfer)
                    if total > memory or value >= best:
                        continue
                    behind = delay + work
                    if behind > group_before * target:
                        behind = group_before * target + work
                    closed = -(-behind // target) * target
                    behind = behind + transfer if behind + transfer <= closed else closed + transfer

                    before, after = -1, head[j + 1, first]
                    while after >= 0 and label[after, 0] <= behind and label[after, 1] > value:
                        before, after = after, label[after, 2]
                    if after >= 0 and label[after, 0] <= behind:
                        continue  # dominated
                    while after >= 0 and label[after, 1] >= value:
                        after = label[after, 2]
                    if made == len(label):
                        longer = np.zeros((2 * made, 5), np.int64)
                        longer[:made] = label
                        label = longer
                    label[made, 0] = behind
                    label[made, 1] = value
                    label[made, 2] = after
                    label[made, 3] = parent
                    label[made, 4] = first
                    if before < 0:
                        head[j + 1, first] = made
                    else:
                        label[before, 2] = made
                    if first == 0 and j + 1 >= least:
                        best, best_label = value, made
                    made += 1
                parent = label[parent, 2]
    stages = 0
    at = best_label
    while at > 0:
        stages += 1
        at = label[at, 3]
    bounds = np.zeros(stages + 1, np.int64)
    at = best_label
    for stage in range(stages + 1):
        bounds[stage] = label[at, 4]
        at = label[at, 3]
    return best, made, bounds
