"""The operations of an allocation and what a periodic schedule of it must obey (MadPipe section 4.3)."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.pattern import Pattern
from pipebench.algorithms.stage_table import (
    BACKWARD,
    CUT_BACKWARD,
    CUT_FORWARD,
    CUT_HELD,
    EACH,
    FORWARD,
    ONCE,
    WEIGHTS,
    WORKSPACE,
    StageTable,
    stage_ns,
)
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import BoolArray


@kernel
def allocation_pattern(
    table: StageTable, bounds: IntArray, special: BoolArray, memory: int
) -> tuple[bool, Pattern]:
    """The pattern of these stages, in chain order F_1, its transfer, F_2, … B_2, the transfer back, B_1.

    bounds, special: of consecutive stages that end with the last layer; when they do not begin with layer 0 the
    pattern is what the whole allocation must obey at least. False when some stage cannot hold one micro-batch.
    Of the special GPU and a neighbour on both sides of it all transfers share one link. An operation follows the
    one before it within a period, which loses nothing: what comes before can be moved later by whole periods.
    """
    stages = len(special)
    inside = np.empty(stages, np.int64)
    specials = 0
    for stage in range(stages):
        if special[stage]:
            inside[specials] = stage
            specials += 1
    shared = specials > 1
    inside = inside[: specials if shared else 0]
    forward = np.empty(stages, np.int64)
    backward = np.empty(stages, np.int64)
    duration = np.empty(4 * stages, np.int64)
    resource = np.empty(4 * stages, np.int64)
    count = 0
    for stage in range(stages):
        if stage > 0 and not (special[stage - 1] and special[stage]):
            duration[count] = table.layers[CUT_FORWARD, bounds[stage]]
            resource[count] = _link(special, stage) if duration[count] > 0 else -1
            count += 1
        forward[stage] = count
        duration[count] = stage_ns(table, FORWARD, bounds[stage], bounds[stage + 1])
        resource[count] = stages if special[stage] else stage
        count += 1
    for stage in range(stages - 1, -1, -1):
        backward[stage] = count
        duration[count] = stage_ns(table, BACKWARD, bounds[stage], bounds[stage + 1])
        resource[count] = stages if special[stage] else stage
        count += 1
        if stage > 0 and not (special[stage - 1] and special[stage]):
            duration[count] = table.layers[CUT_BACKWARD, bounds[stage]]
            resource[count] = _link(special, stage) if duration[count] > 0 else -1
            count += 1
    duration, resource = duration[:count].copy(), resource[:count].copy()
    arc_from = np.empty(4 * count, np.int64)
    arc_to = np.empty(4 * count, np.int64)
    arc_ns = np.empty(4 * count, np.int64)
    arc_periods = np.zeros(4 * count, np.int64)
    arcs = 0
    fits = True
    held = 0
    for stage in range(stages):
        first, end = bounds[stage], bounds[stage + 1]
        own = table.stages[end, first, WEIGHTS] + table.stages[end, first, ONCE] + table.layers[CUT_HELD, first]
        if not (special[stage] and stage + 1 < stages and special[stage + 1]):
            own += table.layers[CUT_HELD, end]
        if special[stage] and shared:
            held += own
            duration[forward[stage]] = max(1, duration[forward[stage]])
            duration[backward[stage]] = max(1, duration[backward[stage]])
            continue
        room = memory - own - table.stages[end, first, WORKSPACE]
        each = table.stages[end, first, EACH]
        if room < each:
            fits = False
        if each > 0:
            arc_from[arcs], arc_to[arcs] = backward[stage], forward[stage]
            # Each operation takes at most one period and waits less than one: more lives limit nothing, and
            # times a period in ns they could leave 64 bits.
            arc_ns[arcs], arc_periods[arcs] = duration[backward[stage]], -min(room // each, 2 * count)
            arcs += 1
    for operation in range(count - 1):
        arc_from[arcs], arc_to[arcs], arc_ns[arcs] = operation, operation + 1, duration[operation]
        arcs += 1
        arc_from[arcs], arc_to[arcs] = operation + 1, operation
        arc_ns[arcs], arc_periods[arcs] = 1 - duration[operation], -1
        arcs += 1
    lane_start = np.zeros(2 if shared else 1, np.int64)
    if shared:
        lane_start[1] = specials
    lane_forward, lane_backward = np.empty(len(inside), np.int64), np.empty(len(inside), np.int64)
    each = np.empty(len(inside), np.int64)
    event_operation = np.empty(2 * len(inside), np.int64)
    event_room = np.empty(2 * len(inside), np.int64)
    events = 0
    for i in range(len(inside)):
        stage = inside[i]
        workspace = table.stages[bounds[stage + 1], bounds[stage], WORKSPACE]
        lane_forward[i], lane_backward[i] = forward[stage], backward[stage]
        each[i] = table.stages[bounds[stage + 1], bounds[stage], EACH]
        event_operation[events], event_room[events] = forward[stage], memory - held - workspace
        events += 1
        if workspace > 0:
            event_operation[events], event_room[events] = backward[stage], memory - held - workspace
            events += 1
        if memory - held - workspace < each[i]:
            fits = False
    return fits, Pattern(
        duration,
        resource,
        arc_from[:arcs].copy(),
        arc_to[:arcs].copy(),
        arc_ns[:arcs].copy(),
        arc_periods[:arcs].copy(),
        lane_start,
        lane_forward,
        lane_backward,
        each,
        np.zeros(events, np.int64),
        event_operation[:events].copy(),
        event_room[:events].copy(),
    )


@kernel
def _link(special: BoolArray, stage: int) -> int:
    """The link of the cut in front of `stage`, not between two special stages: one for each pair of GPUs."""
    between_specials = stage > 1 and special[stage] and special[stage - 2]
    return len(special) + stage - (1 if between_specials else 0)
