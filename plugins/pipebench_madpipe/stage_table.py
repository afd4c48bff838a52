"""What every run of layers of a chain costs as one stage, tabulated for searches that look at many of them."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.chains.chain import Chain, ChainArrays
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

FORWARD, BACKWARD, WORK, CUT_FORWARD, CUT_BACKWARD, CUT_HELD, EVERY_FORWARD, EVERY_BACKWARD, EVERY_WORK = range(9)
WEIGHTS, WORKSPACE, EACH, ONCE, FLOOR = range(5)


class RunTable(NamedTuple):
    """Every run of layers [first, end) of a chain of L layers as one stage, on a cluster of one link level.

    There are two arrays only, because a call of a kernel passes every field separately.

    layers: shape (9, L + 1), in ns and bytes, rows FORWARD …:
        forward, backward, work: prefix sums; backward holds the second forward of a stage that recomputes.
        every_forward, every_backward, every_work: what every stage adds, the same in all columns; see stage_ns.
        cut_forward, cut_backward: time to send the tensors before layer k, and their gradients; 0 at both ends.
        cut_held: bytes of one buffer of both.
    stages: shape (L + 1, L + 1, 5), in bytes, [end, first, WEIGHTS …]:
        weights: held all the time.
        workspace: held while the stage runs.
        each: held for each live micro-batch.
        once: held while any micro-batch is live.
        floor: a lower bound on what the stage needs, never above that of a longer stage.
    """

    layers: IntArray
    stages: IntArray


def run_table(chain: Chain) -> RunTable:
    """The table of a chain on a cluster of one level."""
    if not chain.one_level:
        raise ValueError("the links of this cluster are of several levels")
    arrays, every = chain.arrays, chain.every_times
    layers = np.stack(
        (
            arrays.work - chain.backward,
            chain.backward,
            arrays.work,
            chain.cut_forward[0],
            chain.cut_backward[0],
            arrays.cut_held,
            *(np.full_like(arrays.work, ns) for ns in (every.forward, every.backward, every.period)),
        )
    )
    stages = _layer_bytes(arrays)
    memory = chain.every_memory
    stages[:, :, WEIGHTS] += memory.held
    stages[:, :, WORKSPACE] += memory.workspace
    stages[:, :, EACH] += memory.per_micro_batch
    stages[:, :, ONCE] += memory.while_live
    stages[:, :, FLOOR] += memory.peak(1)
    return RunTable(layers, stages)


@kernel
def stage_ns(table: RunTable, part: int, first: int, end: int) -> int:
    """FORWARD, BACKWARD or WORK of stage [first, end)."""
    return int(table.layers[part, end] - table.layers[part, first] + table.layers[EVERY_FORWARD + part, first])


@kernel
def _layer_bytes(chain: ChainArrays) -> IntArray:
    """The bytes that the layers of a stage add, and those that its first cut adds."""
    length = len(chain.work) - 1
    stages = np.zeros((length + 1, length + 1, 5), np.int64)
    for end in range(1, length + 1):
        held = 0
        scratch = 0
        shared_each = 0
        for first in range(end - 1, -1, -1):
            scratch = max(scratch, chain.workspace[first])
            held += chain.held[first + 1] - chain.held[first]
            for entry in range(chain.shared_start[first], chain.shared_start[first + 1]):
                if chain.shared_next[entry] < end:
                    held -= chain.shared_bytes[entry]
            for entry in range(chain.again_start[first], chain.again_start[first + 1]):
                if chain.again_next[entry] < end:
                    shared_each += chain.again_bytes[entry]
            once = chain.once[end] - chain.once[first]
            each = chain.each[end] - chain.each[first] - shared_each
            stages[end, first, WEIGHTS] = held - once
            stages[end, first, ONCE] = once
            stages[end, first, WORKSPACE] = scratch
            stages[end, first, EACH] = each + chain.entering[first]
            stages[end, first, FLOOR] = held + scratch + each
    return stages
