"""An allocation of a chain's stages to devices, and MadPipe-DP's estimate of its period (section 4.2.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.stage_table import (
    CUT_BACKWARD,
    CUT_FORWARD,
    CUT_HELD,
    EACH,
    FLOOR,
    ONCE,
    WEIGHTS,
    WORK,
    WORKSPACE,
    RunTable,
    stage_ns,
)

BoolArray = NDArray[np.bool_]


class Allocation(NamedTuple):
    """Stage i is the layers bounds[i] … bounds[i + 1] - 1; special[i]: it is on the special GPU."""

    bounds: tuple[int, ...]
    special: tuple[bool, ...]

    @property
    def devices(self) -> int:
        """GPUs used."""
        return self.special.count(False) + any(self.special)

    @property
    def arrays(self) -> tuple[IntArray, BoolArray]:
        """As kernels read it."""
        return np.array(self.bounds, np.int64), np.array(self.special, np.bool_)


def normal_form(allocation: Allocation) -> Allocation:
    """The same with a lone special stage as a normal one."""
    if allocation.special.count(True) > 1:
        return allocation
    return Allocation(allocation.bounds, (False,) * len(allocation.special))


FITS, SKIP, STOP = 0, 1, 2
"""Of a stage: it fits; it does not; nor does any longer one."""


class Estimate(NamedTuple):
    """tight: which memory bound (see above).

    in_place: neighbours that are both on the special GPU exchange nothing and hold one buffer, as the cost model
    has it; else they are charged a transfer and buffers at both ends, as printed. With both the estimate is below
    every schedule of the allocation in which the transfers of a cut take turns.

    both_ways: they need not (links that carry both directions at once, tensors without a gradient): a transfer
    then adds its time to the delay and nothing else, and the longer one of a cut fits into a period (proof: see
    contiguous_plan). Below every schedule on links with one transfer at a time in each direction.
    """

    tight: bool
    in_place: bool
    both_ways: bool = False


class Front(NamedTuple):
    """What is known of the stages behind a layer: delay V in front of them, ns, and its group, V in whole periods;
    load of the special GPU, ns; its bytes with group - 1 live micro-batches, the most that one more adds at its
    peak, and that in the open group.
    """

    delay: int
    group: int
    load: int
    held: int
    peak: int
    current: int


@kernel
def pass_cut(
    table: RunTable, period: int, front: Front, end: int, beside: bool, both_ways: bool
) -> tuple[bool, Front]:
    """The front in front of the cut at `end`; false when its transfers exceed the period.

    beside: both sides are on the special GPU and pass tensors in place. both_ways: see Estimate.
    """
    if beside or end == table.layers.shape[1] - 1:
        return True, front
    cut = table.layers[CUT_FORWARD, end] + table.layers[CUT_BACKWARD, end]
    if cut > (2 * period if both_ways else period):
        return False, front
    closed = front.group * period
    if front.delay + cut <= closed:
        return True, Front(front.delay + cut, front.group, front.load, front.held, front.peak, front.current)
    delay = (front.delay if both_ways else closed) + cut
    return True, Front(delay, -(-delay // period), front.load, front.held, front.peak, 0)


@kernel
def add_stage(
    table: RunTable,
    memory: int,
    period: int,
    estimate: Estimate,
    front: Front,
    first: int,
    end: int,
    special: bool,
    beside: bool,
) -> tuple[int, Front]:
    """The front in front of stage [first, end), given the one in front of the cut at `end`; FITS, SKIP or STOP."""
    work = stage_ns(table, WORK, first, end)
    if work > period:
        return STOP, front
    group = front.group
    delay, current = front.delay + work, front.current
    if delay > group * period:
        delay = group * period + work
        group += 1
        current = 0
    live = max(1, group)
    each, once, workspace = (
        table.stages[end, first, EACH],
        table.stages[end, first, ONCE],
        table.stages[end, first, WORKSPACE],
    )
    held = table.stages[end, first, WEIGHTS] + table.layers[CUT_HELD, first]
    if not special:
        if table.stages[end, first, FLOOR] > memory:
            return STOP, front
        if held + once + workspace + live * each + table.layers[CUT_HELD, end] > memory:
            return SKIP, front
        return FITS, Front(delay, group, front.load, front.held, front.peak, current)
    load = front.load + work
    if load > period:
        return STOP, front
    if not (beside and estimate.in_place):
        held += table.layers[CUT_HELD, end]
    peak = front.peak
    if not estimate.tight:
        held += front.held + workspace + (live - 1) * each + once
    else:
        held += front.held + (live - 1) * each
        one_more = each
        if live > 1:
            held += once
        else:
            one_more += once
        current = max(current, workspace) + one_more
        peak = max(peak, current)
    if held + peak > memory:
        return SKIP, front
    return FITS, Front(delay, group, load, held, peak, current)


@kernel
def admits(
    table: RunTable, bounds: IntArray, special: BoolArray, memory: int, period: int, estimate: Estimate
) -> bool:
    """Whether the estimate of this allocation meets the period."""
    front = Front(0, 0, 0, 0, 0, 0)
    for stage in range(len(special) - 1, -1, -1):
        first, end = bounds[stage], bounds[stage + 1]
        beside = stage + 1 < len(special) and special[stage] and special[stage + 1]
        sent, front = pass_cut(table, period, front, end, beside and estimate.in_place, estimate.both_ways)
        if not sent:
            return False
        status, front = add_stage(table, memory, period, estimate, front, first, end, special[stage], beside)
        if status != FITS:
            return False
    return True


@kernel
def estimated_period(
    table: RunTable,
    bounds: IntArray,
    special: BoolArray,
    memory: int,
    low: int,
    below: int,
    estimate: Estimate,
) -> int:
    """The shortest period in low … below - 1 at which the estimate is met; `below` when there is none."""
    high = below
    while low < high:
        middle = (low + high) // 2
        if admits(table, bounds, special, memory, middle, estimate):
            high = middle
        else:
            low = middle + 1
    return int(high)
