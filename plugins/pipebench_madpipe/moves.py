"""Local search on allocations, each scheduled by its operations (MadPipe section 4.3)."""

from collections.abc import Sequence

import numpy as np

from pipebench.algorithms.jit import in_python, kernel
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
    kinds, cuts = special.tolist(), bounds.tolist()
    stages = list(range(len(kinds)))
    inside = [stage for stage in stages if kinds[stage]]
    shared = len(inside) > 1
    time_ns = in_python(stage_ns)
    held = table.stages[bounds[1:], bounds[:-1]].tolist()
    layers = table.layers[:, bounds].tolist()
    crossed = [stage > 0 and not (kinds[stage - 1] and kinds[stage]) for stage in stages]
    least = 1 if shared else 0
    operations: list[tuple[int, int]] = []
    forward, backward = [0] * len(stages), [0] * len(stages)

    def add_transfer(stage: int, part: int) -> None:
        if crossed[stage]:
            ns = layers[part][stage]
            operations.append((ns, _link(kinds, stage) if ns > 0 else -1))

    def add_pass(stage: int, part: int, places: list[int]) -> None:
        places[stage] = len(operations)
        ns = int(time_ns(table, part, cuts[stage], cuts[stage + 1]))
        operations.append((max(least, ns), len(stages)) if kinds[stage] else (ns, stage))

    for stage in stages:
        add_transfer(stage, CUT_FORWARD)
        add_pass(stage, FORWARD, forward)
    for stage in reversed(stages):
        add_pass(stage, BACKWARD, backward)
        add_transfer(stage, CUT_BACKWARD)
    arcs: list[tuple[int, int, int, int]] = []
    fits, together = True, 0
    for stage in stages:
        own = held[stage][WEIGHTS] + held[stage][ONCE] + layers[CUT_HELD][stage]
        if stage + 1 == len(stages) or crossed[stage + 1]:
            own += layers[CUT_HELD][stage + 1]
        if kinds[stage] and shared:
            together += own
            continue
        room, each = memory - own - held[stage][WORKSPACE], held[stage][EACH]
        fits &= room >= each
        if each > 0:
            # Each operation takes at most one period and waits less than one: more lives limit nothing, and
            # times a period in ns they could leave 64 bits.
            lives = min(room // each, 2 * len(operations))
            arcs.append((backward[stage], forward[stage], operations[backward[stage]][0], -lives))
    for operation, (ns, _) in enumerate(operations[:-1]):
        arcs += (operation, operation + 1, ns, 0), (operation + 1, operation, 1 - ns, -1)
    lanes = [(forward[stage], backward[stage], held[stage][EACH]) for stage in inside] if shared else []
    events: list[tuple[int, int]] = []
    for stage in inside if shared else []:
        room = memory - together - held[stage][WORKSPACE]
        events.append((forward[stage], room))
        if held[stage][WORKSPACE] > 0:
            events.append((backward[stage], room))
        fits &= room >= held[stage][EACH]
    columns = (
        *_columns(operations, 2),
        *_columns(arcs, 4),
        np.array([0, len(inside)] if shared else [0], np.int64),
        *_columns(lanes, 3),
        np.zeros(len(events), np.int64),
        *_columns(events, 2),
    )
    return fits, PeriodicConstraints._make(columns)


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> tuple[IntArray, ...]:
    """Columns of a table, each an array of its own."""
    if not rows:
        return tuple(np.zeros((width, 0), np.int64))
    return tuple(np.array(tuple(zip(*rows, strict=True)), np.int64))


def _link(special: Sequence[bool], stage: int) -> int:
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
    bounds: IntArray, special: BoolArray, kind: int, stage: int, choice: int, at: IntArray, where: BoolArray
) -> int:
    """Fill the bounds `at` and special stages `where` after a move. Returns the stages; 0: no such move."""
    stages = len(special)
    more = 0
    if kind == SHIFT_CUT:
        by = choice - SHIFT if choice < SHIFT else choice - SHIFT + 1
        if stage == 0 or not bounds[stage - 1] < bounds[stage] + by < bounds[stage + 1]:
            return 0
    elif kind == CHANGE:
        if choice == 1 and stage + 1 >= stages:
            return 0
    elif kind == JOIN:
        if stage + 1 >= stages:
            return 0
        more = -1
    else:
        cut = bounds[stage] + 1 + choice // 4
        if cut >= bounds[stage + 1]:
            return 0
        more = 1
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
    return stages + more


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
def _next_move(
    table: RunTable,
    memory: int,
    period: int,
    gpus: tuple[int, int],
    bounds: IntArray,
    special: BoolArray,
    place: IntArray,
    estimate: Estimate,
    at: IntArray,
    where: BoolArray,
) -> int:
    """The loops of next_move: fills `at` and `where`, moves `place` on. Returns the stages; 0: no move."""
    while place[0] < KINDS:
        while place[1] < len(special):
            while place[2] < _choices(bounds, place[0], place[1]):
                stages = _apply_move(bounds, special, place[0], place[1], place[2], at, where)
                place[2] += 1
                if stages == 0 or not gpus[0] <= _devices(where[:stages]) <= gpus[1]:
                    continue
                if admits(table, at[: stages + 1], where[:stages], memory, period, estimate):
                    return stages
            place[1] += 1
            place[2] = 0
        place[0] += 1
        place[1] = 0
    return 0


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
    # Arrays are made here: numba takes a second to compile what makes them.
    after = np.array(place, np.int64)
    at, where = np.empty(len(bounds) + 1, np.int64), np.empty(len(special) + 1, np.bool_)
    stages = int(_next_move(table, memory, period, gpus, bounds, special, after, estimate, at, where))
    kind, stage, choice = after.tolist()
    return (kind, stage, choice), at[: stages + (stages > 0)], where[:stages]


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
