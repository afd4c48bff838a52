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
    """The stages of a chain and where they run.

    bounds: stage i holds the layers bounds[i] … bounds[i + 1] - 1.
    special: special[i] says whether stage i runs on the special GPU, which may run several stages.
    """

    bounds: tuple[int, ...]
    special: tuple[bool, ...]

    @property
    def devices(self) -> int:
        """GPUs used."""
        return self.special.count(False) + any(self.special)

    @property
    def arrays(self) -> tuple[IntArray, BoolArray]:
        """Bounds and special as arrays, for the kernels."""
        return np.array(self.bounds, np.int64), np.array(self.special, np.bool_)


def normal_form(allocation: Allocation) -> Allocation:
    """The same allocation, where a single stage on the special GPU becomes a normal stage."""
    if allocation.special.count(True) > 1:
        return allocation
    return Allocation(allocation.bounds, (False,) * len(allocation.special))


FITS, SKIP, STOP = 0, 1, 2
"""Of a stage: it fits; it does not; nor does any longer one."""


class Estimate(NamedTuple):
    """Which estimate of an allocation's period is computed.

    tight: the special GPU holds one micro-batch more only in the group of stages that needs most for it, and the
        workspace of one stage. Else the workspace of all its stages is added up, and no further micro-batch
        counts.
    in_place: two neighbours on the special GPU exchange nothing and share one buffer, as in the cost model. Else
        they pay a transfer and a buffer at each end, as the paper prints it.
    both_ways: the two transfers of a cut may overlap (links that carry both directions at once, tensors without a
        gradient). A transfer then only adds its time to the delay, and the longer one of a cut must fit into a
        period.

    With tight and in_place the estimate is a lower bound on every schedule of the allocation whose transfers of a
    cut take turns. With both_ways it is one on links with one transfer at a time in each direction (proof: see
    contiguous_plan).
    """

    tight: bool
    in_place: bool
    both_ways: bool = False


class Front(NamedTuple):
    """What the stages behind a layer need.

    delay: V in front of these stages, in ns.
    group: V in whole periods, rounded up.
    load: work of the special GPU, in ns.
    held: bytes of the special GPU with group - 1 live micro-batches.
    peak: bytes that one more live micro-batch adds at most, in any group.
    current: bytes that it adds in the group that is still open.
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
    """Move the front across the cut at `end`. The first value is false when the transfers exceed the period.

    beside: both sides are on the special GPU and pass tensors in place.
    both_ways: see Estimate.
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
    """Move the front across stage [first, end). The status is FITS, SKIP or STOP.

    front: the one in front of the cut at `end`.
    special: the stage runs on the special GPU.
    beside: so does the stage behind it.
    """
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
    if load > period or (estimate.tight and front.held + table.stages[end, first, FLOOR] > memory):
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
    """The shortest period in low … below - 1 that the estimate of this allocation meets; `below` for none."""
    high = below
    while low < high:
        middle = (low + high) // 2
        if admits(table, bounds, special, memory, middle, estimate):
            high = middle
        else:
            low = middle + 1
    return int(high)
