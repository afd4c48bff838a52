"""What layers 0 … k - 1 need at least, whatever stands behind them: bounds that drop labels early.

The delay in front of layer k is the work of layers k … L - 1 and an excess. For each excess, in steps of half a
period, the special GPU's least load, least bytes and least sum of both, as shares of what it has, are tabulated,
each on its own. An excess is rounded down, so that no label that leads to an allocation is dropped.
"""

import numpy as np

from pipebench.algorithms.assign import assign
from pipebench.algorithms.jit import kernel
from pipebench.algorithms.stage_table import WORK, StageTable
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.estimate import FITS, STOP, Estimate, Front, add_stage, pass_cut

FAR = 2**60
LOAD, HELD, BOTH = range(3)
SHARE = 2**20
"""All that the special GPU has of one of them, in BOTH."""
SHORT, SHORT_EXCESSES, EXCESSES = 100, 6, 2
"""Steps that are told apart for chains of at most SHORT layers, and for longer ones."""


@kernel
def excess_of(table: StageTable, period: int, delay: int, first: int) -> int:
    """The step of this delay in front of layer `first`; the last one stands for all beyond, too."""
    excess = delay - table.layers[WORK, -1] + table.layers[WORK, first]
    return int(2 * excess // period)


@kernel
def least_needs(table: StageTable, memory: int, period: int, normals: int, estimate: Estimate) -> IntArray:
    """For layers 0 … k - 1, [k, 1 if the stage at k is special, excess, normal GPUs left, LOAD | HELD | BOTH]."""
    length = table.layers.shape[1] - 1
    steps = SHORT_EXCESSES if length <= SHORT else EXCESSES
    needs = np.full((length + 1, 2, steps, normals + 1, 3), FAR, np.int64)
    needs[0] = 0
    for end in range(1, length + 1):
        for excess in range(steps):
            delay = table.layers[WORK, length] - table.layers[WORK, end] + -(-excess * period // 2)
            at = Front(delay, -(-delay // period), 0, 0, 0, 0)
            for way in range(3):
                if way == 1:
                    # A normal stage does not ask what stands behind it.
                    assign(needs[end, 1, excess], needs[end, 0, excess])
                kind = min(way, 1)
                together = way == 2
                sent, behind = pass_cut(table, period, at, end, together and estimate.in_place, estimate.both_ways)
                if not sent:
                    continue
                normal = 1 - kind
                least = needs[end, way // 2, excess]
                for first in range(end - 1, -1, -1):
                    status, front = add_stage(
                        table, memory, period, estimate, behind, first, end, kind == 1, together
                    )
                    if status == STOP:
                        break
                    if status != FITS:
                        continue
                    before = needs[first, kind, min(excess_of(table, period, front.delay, first), steps - 1)]
                    both = shares(front.load, front.held, period, memory)
                    for left in range(normals + 1 - normal):
                        with_this = least[left + normal]
                        with_this[LOAD] = min(with_this[LOAD], front.load + before[left, LOAD])
                        with_this[HELD] = min(with_this[HELD], front.held + before[left, HELD])
                        with_this[BOTH] = min(with_this[BOTH], both + before[left, BOTH])
    return needs


@kernel
def shares(load: int, held: int, period: int, memory: int) -> int:
    """Load and bytes as shares of the period and the memory, rounded down."""
    return int(load * SHARE // period + held * SHARE // max(1, memory))


@kernel
def cannot_end(
    table: StageTable, memory: int, period: int, needs: IntArray, front: Front, first: int, kind: int, left: int
) -> bool:
    """Whether no stages of layers 0 … first - 1 on `left` normal GPUs and the special one complete this front."""
    excess = min(excess_of(table, period, front.delay, first), needs.shape[2] - 1)
    held = front.held + front.peak
    return bool(
        front.load + needs[first, kind, excess, left, LOAD] > period
        or held + needs[first, kind, excess, left, HELD] > memory
        or shares(front.load, held, period, memory) + needs[first, kind, excess, left, BOTH] > 2 * SHARE
    )
