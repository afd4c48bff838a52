"""Local search on allocations, each scheduled by its operations (MadPipe section 4.3)."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import BoolArray, Estimate, admits
from pipebench_madpipe.pattern import PeriodicConstraints
from pipebench_madpipe.pattern_search import FOUND, schedule_at, shortest_pattern
from pipebench_madpipe.stage_table import (
    BACKWARD,
    CUT_BACKWARD,
    CUT_FORWARD,
    CUT_HELD,
    EACH,
    FORWARD,
    ONCE,
    WEIGHTS,
    WORKSPACE,
    RunTable,
    stage_ns,
)


@kernel
def allocation_pattern(
    table: RunTable, bounds: IntArray, special: BoolArray, memory: int
) -> tuple[bool, PeriodicConstraints]:
    """The constraints on a periodic schedule of these stages; false when some stage cannot hold one micro-batch.

    The operations are in chain order: F_1, its transfer, F_2, … B_2, the transfer back, B_1.

    bounds, special: consecutive stages that end with the last layer. When they do not begin with layer 0, the
    constraints are necessary ones for every allocation that ends so.

    All transfers between the special GPU and a neighbour on both sides of it share one link. Each operation starts
    within a period of the one before it. That loses nothing, because earlier operations can move later by whole
    periods.
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
    duration, resource = duration[:count], resource[:count]
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
    return fits, PeriodicConstraints(
        duration,
        resource,
        arc_from[:arcs],
        arc_to[:arcs],
        arc_ns[:arcs],
        arc_periods[:arcs],
        lane_start,
        lane_forward,
        lane_backward,
        each,
        np.zeros(events, np.int64),
        event_operation[:events],
        event_room[:events],
    )


@kernel
def _link(special: BoolArray, stage: int) -> int:
    """The link of the cut in front of `stage`: one for each pair of GPUs.

    The cut must not lie between two special stages.
    """
    between_specials = stage > 1 and special[stage] and special[stage - 2]
    return len(special) + stage - (1 if between_specials else 0)


SHIFT_CUT, CHANGE, JOIN, SPLIT = range(4)
KINDS = 4
"""Shift a cut, change the kind of a stage (and of the next one), join two stages, split one."""
SHIFT = 3
"""Layers by which a cut is shifted at most."""


@kernel
def _apply_move(
    bounds: IntArray, special: BoolArray, kind: int, stage: int, choice: int
) -> tuple[IntArray, BoolArray]:
    """The allocation after a move; with no stages when there is no such move."""
    stages = len(special)
    none = np.empty(0, np.int64), np.empty(0, np.bool_)
    more = 0
    if kind == SHIFT_CUT:
        by = choice - SHIFT if choice < SHIFT else choice - SHIFT + 1
        if stage == 0 or not bounds[stage - 1] < bounds[stage] + by < bounds[stage + 1]:
            return none
    elif kind == CHANGE:
        if choice == 1 and stage + 1 >= stages:
            return none
    elif kind == JOIN:
        if stage + 1 >= stages:
            return none
        more = -1
    else:
        cut = bounds[stage] + 1 + choice // 4
        if cut >= bounds[stage + 1]:
            return none
        more = 1
    at, where = np.empty(stages + more + 1, np.int64), np.empty(stages + more, np.bool_)
    for i in range(stages + more):
        of = i if i <= stage else i - more
        at[i], where[i] = bounds[of], special[of]
    at[stages + more] = bounds[stages]
    if kind == SHIFT_CUT:
        at[stage] += by
    elif kind == CHANGE:
        where[stage] = not where[stage]
        if choice == 1:
            where[stage + 1] = not where[stage + 1]
    elif kind == JOIN:
        where[stage] = special[stage + choice]
    else:
        at[stage + 1] = cut
        where[stage], where[stage + 1] = choice % 2 == 1, choice // 2 % 2 == 1
    return at, where


@kernel
def _choices(bounds: IntArray, kind: int, stage: int) -> int:
    if kind == SHIFT_CUT:
        return 2 * SHIFT
    if kind == SPLIT:
        return int(4 * (bounds[stage + 1] - bounds[stage] - 1))
    return 2


@kernel
def _devices(special: BoolArray) -> int:
    """GPUs used."""
    inside = 0
    for stage in range(len(special)):
        inside += special[stage]
    return len(special) - inside + min(inside, 1)


@kernel
def next_move(
    table: RunTable,
    memory: int,
    period: int,
    gpus: tuple[int, int],
    bounds: IntArray,
    special: BoolArray,
    place: tuple[int, int, int],
    estimate: Estimate,
) -> tuple[tuple[int, int, int], IntArray, BoolArray]:
    """The first move from `place` on whose estimate meets the period, the bounds and the special stages after it.

    gpus: least and most GPUs that may be used.
    place: kind, stage and choice.

    No stages are returned where there is no such move.
    """
    kind, stage, choice = place
    while kind < KINDS:
        while stage < len(special):
            while choice < _choices(bounds, kind, stage):
                at, where = _apply_move(bounds, special, kind, stage, choice)
                choice += 1
                if len(where) == 0 or not gpus[0] <= _devices(where) <= gpus[1]:
                    continue
                if admits(table, at, where, memory, period, estimate):
                    return (kind, stage, choice), at, where
            stage, choice = stage + 1, 0
        kind, stage = kind + 1, 0
    return (kind, stage, choice), np.empty(0, np.int64), np.empty(0, np.bool_)


def schedule_below(
    table: RunTable, memory: int, low: int, below: int, bounds: IntArray, special: BoolArray, most_nodes: int
) -> tuple[int, IntArray, int]:
    """The shortest period below `below` of a schedule of the allocation (-1: none); its instants; the nodes."""
    nothing = np.zeros(0, np.int64)
    if below <= low:
        return -1, nothing, 0
    fits, pattern = allocation_pattern(table, bounds, special, memory)
    if not fits:
        return -1, nothing, 0
    status, nodes, instants = schedule_at(pattern, below - 1, most_nodes)
    if status != FOUND:
        return -1, nothing, nodes
    period, _, visited, shorter = shortest_pattern(pattern, low, below - 1, most_nodes)
    if period < 0:
        return below - 1, instants, nodes + visited
    return period, shorter, nodes + visited


def improve(
    table: RunTable,
    memory: int,
    low: int,
    period: int,
    least: int,
    most: int,
    bounds: IntArray,
    special: BoolArray,
    most_nodes: int,
    each_nodes: int,
) -> tuple[int, IntArray, BoolArray, IntArray, int]:
    """Take moves while one shortens the period. Returns the period, bounds, special, instants and nodes.

    low: stop at this period.
    most_nodes: nodes of all schedules together.
    each_nodes: nodes of one schedule at one period.

    Instants are empty where no move shortened the period. A move is scheduled only when its estimate is below the
    period.
    """
    instants = np.zeros(0, np.int64)
    nodes = 0
    place = (0, 0, 0)
    while period > low and nodes < most_nodes:
        place, at, where = next_move(
            table, memory, period - 1, (least, most), bounds, special, place, Estimate(tight=True, in_place=True)
        )
        if len(where) == 0:
            break
        shorter, found, visited = schedule_below(table, memory, low, period, at, where, each_nodes)
        nodes += visited
        if shorter >= 0:
            period, bounds, special, instants = shorter, at, where, found
            place = (0, 0, 0)
    return period, bounds, special, instants, nodes
