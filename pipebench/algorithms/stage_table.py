"""What every run of layers of a chain costs as one stage, tabulated for searches that look at many of them."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.chain import Chain, ChainArrays
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

FORWARD, BACKWARD, WORK, CUT_FORWARD, CUT_BACKWARD, CUT_HELD = range(6)
WEIGHTS, WORKSPACE, EACH, ONCE, FLOOR = range(5)


class StageTable(NamedTuple):
    """Stages [first, end) of a chain of L layers on a cluster of one link level, in ns and bytes.

    Two arrays only: a call of a kernel passes every field of each. layers: shape (6, L + 1), rows FORWARD …;
    stages: (L + 1, L + 1, 5), [end, first, WEIGHTS …].

    forward, backward, work: prefix sums of ns; backward holds the second forward of a stage that recomputes.
    cut_forward, cut_backward: ns to send the tensors before layer k and their gradients, 0 at both ends.
    cut_held: one buffer of both.

    weights, workspace, each, once, [first, end]: held all the time, scratch while it runs, for each live
    micro-batch, and while any is live; floor: less than what the stage needs with one live micro-batch, and never
    more than any longer stage's.
    """

    layers: IntArray
    stages: IntArray


def stage_table(chain: Chain) -> StageTable:
    """The table of a chain on a cluster of one level."""
    if not chain.one_level:
        raise ValueError("the links of this cluster are of several levels")
    arrays = chain.arrays
    layers = np.stack(
        (
            arrays.work - chain.backward,
            chain.backward,
            arrays.work,
            chain.cut_forward[0],
            chain.cut_backward[0],
            arrays.cut_held,
        )
    )
    return StageTable(layers, _stage_bytes(arrays))


@kernel
def _stage_bytes(chain: ChainArrays) -> IntArray:
    length = len(chain.work) - 1
    stages = np.zeros((length + 1, length + 1, 5), np.int64)
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
            stages[end, first, WEIGHTS] = held
            stages[end, first, WORKSPACE] = scratch
            stages[end, first, FLOOR] = held + scratch + saved
            if chain.recompute:
                stages[end, first, ONCE] = saved
                stages[end, first, EACH] = chain.inputs[first] + read
            else:
                stages[end, first, EACH] = saved
    return stages
