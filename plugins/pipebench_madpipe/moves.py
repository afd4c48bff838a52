"""Local search on allocations: each move keeps the layers in order and the GPUs within their number."""

import numpy as np

from pipebench.algorithms.pattern_search import FOUND, schedule_at, shortest_pattern
from pipebench.algorithms.stage_table import StageTable
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import BoolArray
from pipebench_madpipe.allocation_pattern import allocation_pattern
from pipebench_madpipe.estimate import Estimate, admits

SHIFT = 3
MOVES = 4
"""Kinds of move: shift a cut, change a stage's kind, join two stages, split one."""


def _moved(bounds: IntArray, special: BoolArray, kind: int, stage: int, choice: int) -> tuple[IntArray, BoolArray]:
    """The allocation after a move; with no stages when there is no such move."""
    none = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    stages = len(special)
    if kind == 0:
        if stage == 0 or choice >= 2 * SHIFT:
            return none
        by = choice - SHIFT if choice < SHIFT else choice - SHIFT + 1
        at, where = bounds.copy(), special.copy()
        at[stage] += by
        return (at, where) if at[stage - 1] < at[stage] < at[stage + 1] else none
    if kind == 1:
        if choice >= 2 or (choice == 1 and stage + 1 >= stages):
            return none
        at, where = bounds.copy(), special.copy()
        where[stage] = not where[stage]
        if choice == 1:
            where[stage + 1] = not where[stage + 1]
        return at, where
    if kind == 2:
        if choice >= 2 or stage + 1 >= stages:
            return none
        at = np.concatenate((bounds[: stage + 1], bounds[stage + 2 :]))
        where = np.concatenate((special[: stage + 1], special[stage + 2 :]))
        where[stage] = special[stage + choice]
        return at, where
    cut = bounds[stage] + 1 + choice // 4
    if cut >= bounds[stage + 1]:
        return none
    at = np.concatenate((bounds[: stage + 1], np.array([cut]), bounds[stage + 1 :]))
    where = np.concatenate((special[: stage + 1], special[stage:]))
    where[stage], where[stage + 1] = choice % 2 == 1, choice // 2 % 2 == 1
    return at, where


def devices_of(special: BoolArray) -> int:
    """GPUs used."""
    inside = int(np.sum(special))
    return len(special) - inside + (1 if inside > 0 else 0)


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
    estimate = Estimate(True, True)
    improved = True
    while improved and period > low and nodes < most_nodes:
        improved = False
        for kind in range(MOVES):
            for stage in range(len(special)):
                choices = 4 * (bounds[stage + 1] - bounds[stage]) if kind == 3 else 2 * SHIFT
                for choice in range(choices):
                    at, where = _moved(bounds, special, kind, stage, choice)
                    if len(where) == 0 or not least <= devices_of(where) <= most:
                        continue
                    if not admits(table, at, where, memory, period - 1, estimate):
                        continue
                    shorter, found, visited = schedule_below(table, memory, low, period, at, where, each_nodes)
                    nodes += visited
                    if shorter >= 0:
                        period, bounds, special, instants = shorter, at, where, found
                        improved = True
                        break
                    if nodes >= most_nodes:
                        break
                if improved or nodes >= most_nodes:
                    break
            if improved or nodes >= most_nodes:
                break
    return period, bounds, special, instants, nodes
