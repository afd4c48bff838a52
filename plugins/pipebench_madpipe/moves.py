"""Local search on allocations: each move keeps the layers in order and the GPUs within their number."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.pattern_search import FOUND, schedule_at, shortest_pattern
from pipebench.algorithms.stage_table import StageTable
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import BoolArray
from pipebench_madpipe.allocation_pattern import allocation_pattern
from pipebench_madpipe.estimate import Estimate, admits

SHIFT_CUT, CHANGE, JOIN, SPLIT = range(4)
KINDS = 4
"""Shift a cut, change the kind of a stage (and of the next one), join two stages, split one."""
SHIFT = 3
"""Layers by which a cut is shifted at most."""


@kernel
def _moved(bounds: IntArray, special: BoolArray, kind: int, stage: int, choice: int) -> tuple[IntArray, BoolArray]:
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
    table: StageTable,
    memory: int,
    period: int,
    gpus: tuple[int, int],
    bounds: IntArray,
    special: BoolArray,
    place: tuple[int, int, int],
    estimate: Estimate,
) -> tuple[tuple[int, int, int], IntArray, BoolArray]:
    """The first move from `place` on (kind, stage, choice) whose estimate meets the period, and what follows it.

    gpus: least and most that may be used. No stages: there is no such move.
    """
    kind, stage, choice = place
    while kind < KINDS:
        while stage < len(special):
            while choice < _choices(bounds, kind, stage):
                at, where = _moved(bounds, special, kind, stage, choice)
                choice += 1
                if len(where) == 0 or not gpus[0] <= _devices(where) <= gpus[1]:
                    continue
                if admits(table, at, where, memory, period, estimate):
                    return (kind, stage, choice), at, where
            stage, choice = stage + 1, 0
        kind, stage = kind + 1, 0
    return (kind, stage, choice), np.empty(0, np.int64), np.empty(0, np.bool_)


def schedule_below(
    table: StageTable, memory: int, low: int, below: int, bounds: IntArray, special: BoolArray, most_nodes: int
) -> tuple[int, IntArray, int]:
    """The shortest period below `below` at which the allocation has a schedule (-1), its instants, and nodes."""
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
    table: StageTable,
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
    """Take moves while one shortens the period: the period, bounds, special, instants and nodes.

    No instants: no move did. Stops at `low`, or when the schedules have taken `most_nodes` nodes, each_nodes for
    one at one period. A move is scheduled only when its estimate is below the period.
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
