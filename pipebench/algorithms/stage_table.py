"""What every run of layers of a chain costs as one stage, tabulated for searches that look at many of them."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.chain import Chain, ChainArrays
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray


class StageTable(NamedTuple):
    """Stages [first, end) of a chain of L layers on a cluster of one link level, in ns and bytes.

    forward, backward: prefix sums of ns, shape (L + 1,); backward holds the second forward of a stage that
    recomputes. weights, workspace, each, once: shape (L + 1, L + 1), [first, end]: held all the time, scratch
    while it runs, for each live micro-batch, and while any is live; floor: less than what the stage needs with one
    live micro-batch, and never more than any longer stage's. saved: prefix sums of what each live
    micro-batch adds, 0 where stages recompute, (L + 1,). cut_forward, cut_backward: ns to send the
    tensors before layer k and their gradients, (L + 1,), 0 at both ends. cut_held: one buffer of both, (L + 1,).
    """

    forward: IntArray
    backward: IntArray
    weights: IntArray
    workspace: IntArray
    each: IntArray
    once: IntArray
    floor: IntArray
    saved: IntArray
    cut_forward: IntArray
    cut_backward: IntArray
    cut_held: IntArray


def stage_table(chain: Chain) -> StageTable:
    """The table of a chain on a cluster of one level."""
    if not chain.one_level:
        raise ValueError("the links of this cluster are of several levels")
    arrays = chain.arrays
    # Searches go through the stages with one end: these lie side by side.
    weights, workspace, each, once, floor = (by_end.T for by_end in _stage_bytes(arrays))
    return StageTable(
        arrays.work - chain.backward,
        chain.backward,
        weights,
        workspace,
        each,
        once,
        floor,
        arrays.saved * (not arrays.recompute),
        chain.cut_forward[0],
        chain.cut_backward[0],
        arrays.cut_held,
    )


@kernel
def _stage_bytes(chain: ChainArrays) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    length = len(chain.work) - 1
    weights = np.zeros((length + 1, length + 1), np.int64)
    workspace = np.zeros((length + 1, length + 1), np.int64)
    each = np.zeros((length + 1, length + 1), np.int64)
    once = np.zeros((length + 1, length + 1), np.int64)
    floor = np.zeros((length + 1, length + 1), np.int64)
    for end in range(1, length + 1):
        held = 0
        scratch = 0
        read = 0
        for first in range(end - 1, -1, -1):
            scratch = max(scratch, chain.workspace[first])
            held += chain.held[first + 1] - chain.held[first]
            for entry in range(chain.shared_start[first], chain.shared_start[first + 1]):
                if chain.shared_next[entry] < end:
                    held -= chain.shared_bytes[entry]
            read += chain.read[first + 1] - chain.read[first]
            for entry in range(chain.again_start[first], chain.again_start[first + 1]):
                if chain.again_next[entry] < end:
                    read -= chain.again_bytes[entry]
            saved = chain.saved[end] - chain.saved[first]
            weights[end, first] = held
            workspace[end, first] = scratch
            floor[end, first] = held + scratch + saved
            if chain.recompute:
                once[end, first] = saved
                each[end, first] = chain.inputs[first] + read
            else:
                each[end, first] = saved
    return weights, workspace, each, once, floor
