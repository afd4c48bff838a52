"""MadPipe-DP at one target period, exact: Pareto labels instead of a grid, and bounds that drop them early."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import FITS, STOP, BoolArray, Estimate, Front, add_stage, pass_cut
from pipebench_madpipe.stage_table import (
    CUT_HELD,
    EACH,
    EVERY_WORK,
    FLOOR,
    ONCE,
    WEIGHTS,
    WORK,
    WORKSPACE,
    RunTable,
)

FAR = 2**60
LOAD_NEED, HELD_NEED, BOTH_NEEDS = range(3)
SHARE = 2**20
"""All that the special GPU has of one of them, in BOTH."""
SHORT, SHORT_EXCESSES, EXCESSES = 100, 6, 2
"""Steps that are told apart for chains of at most SHORT layers, and for longer ones."""


@kernel
def step_of(table: RunTable, period: int, delay: int, first: int, steps: int) -> int:
    """The step of this delay in front of layer `first`, in half periods. The last stands for larger delays too.

    Compared, because a division takes longer.
    """
    twice = 2 * (delay - table.layers[WORK, -1] + table.layers[WORK, first])
    step = 0
    while step < steps - 1 and twice >= (step + 1) * period:
        step += 1
    return step


@kernel
def least_needs(table: RunTable, memory: int, period: int, needs: IntArray, estimate: Estimate) -> None:
    """Least needs of the layers 0 … k - 1; `needs` holds FAR at first.

    It is indexed [k, 1 if the stage at k is special else 0, excess, normal GPUs left, LOAD | HELD | BOTH].
    """
    length, steps, normals = needs.shape[0] - 1, needs.shape[2], needs.shape[3] - 1
    layers, stages = table.layers, table.stages
    work, cut_held, every = layers[WORK], layers[CUT_HELD], layers[EVERY_WORK, 0]
    whole = work[length]
    needs[0] = 0
    for end in range(1, length + 1):
        for excess in range(steps):
            ready = whole - work[end] + -(-excess * period // 2)
            at = Front(ready, -(-ready // period), 0, 0, 0, 0)
            for way in range(3):
                if way == 1:
                    # A normal stage does not ask what stands behind it.
                    for left in range(normals + 1):
                        for one in range(BOTH_NEEDS + 1):
                            needs[end, 1, excess, left, one] = needs[end, 0, excess, left, one]
                kind, to = min(way, 1), way // 2
                special = kind == 1
                together = way == 2
                sent, behind = pass_cut(table, period, at, end, together and estimate.in_place, estimate.both_ways)
                if not sent:
                    continue
                in_place = together and estimate.in_place
                cut_behind = 0 if special and in_place else cut_held[end]
                normal = 1 - kind
                here = needs[end, to, excess]
                # What add_stage does, with the numbers of all stages that end here at hand.
                for first in range(end - 1, -1, -1):
                    lasts = work[end] - work[first] + every
                    if lasts > period or ((estimate.tight or not special) and stages[end, first, FLOOR] > memory):
                        break
                    group, delay = behind.group, behind.delay + lasts
                    current = behind.current
                    if delay > group * period:
                        delay = group * period + lasts
                        group += 1
                        current = 0
                    live = max(1, group)
                    each, once = stages[end, first, EACH], stages[end, first, ONCE]
                    workspace = stages[end, first, WORKSPACE]
                    held = stages[end, first, WEIGHTS] + cut_held[first] + cut_behind
                    load, both = 0, 0
                    if not special:
                        if held + once + workspace + live * each > memory:
                            continue
                        held = 0
                    else:
                        load = lasts
                        peak = 0
                        if not estimate.tight:
                            held += workspace + (live - 1) * each + once
                        else:
                            held += (live - 1) * each
                            one_more = each
                            if live > 1:
                                held += once
                            else:
                                one_more += once
                            peak = max(current, workspace) + one_more
                        if held + peak > memory:
                            continue
                        both = shares(load, held, period, memory)
                    step = step_of(table, period, delay, first, steps)
                    before = needs[first, kind, step]
                    for left in range(normals + 1 - normal):
                        least_load = before[left, LOAD_NEED]
                        if least_load >= FAR:
                            continue  # nothing stands before it
                        after = left + normal
                        here[after, LOAD_NEED] = min(here[after, LOAD_NEED], load + least_load)
                        here[after, HELD_NEED] = min(here[after, HELD_NEED], held + before[left, HELD_NEED])
                        here[after, BOTH_NEEDS] = min(here[after, BOTH_NEEDS], both + before[left, BOTH_NEEDS])


@kernel
def shares(load: int, held: int, period: int, memory: int) -> int:
    """Load and bytes as shares of the period and the memory, rounded down."""
    return int(load * SHARE // period + held * SHARE // max(1, memory))


@kernel
def cannot_end(
    table: RunTable, memory: int, period: int, needs: IntArray, front: Front, first: int, kind: int, left: int
) -> bool:
    """Whether no stages of layers 0 … first - 1 on `left` normal GPUs and the special one complete this front.

    needs: of least_needs, indexed [kind, normal GPUs left, excess, k, LOAD | HELD | BOTH]. Fronts are tried at one
        layer after the other.
    """
    excess = step_of(table, period, front.delay, first, needs.shape[2])
    least = needs[kind, left, excess, first]
    held = front.held + front.peak
    if front.load + least[LOAD_NEED] > period or held + least[HELD_NEED] > memory:
        return True
    both = 2 * SHARE - least[BOTH_NEEDS]
    # Divisions of integers take longest; they round by less than one each.
    roughly = front.load / period * SHARE + held / max(1, memory) * SHARE
    if roughly < both or roughly > both + 3:
        return bool(roughly > both)
    return bool(shares(front.load, held, period, memory) > both)


NOTHING_BEHIND = Front(0, 0, 0, 0, 0, 0)
FREE, USED, BESIDE = 0, 1, 2
"""No stage is special yet; some stage is; the leftmost one is."""
# Columns of a label; AFTER is the next one of the same layer, normals and state, -1 the last.
DELAY, LOAD, HELD, PEAK, CURRENT, GROUP, FIRST, STATE, PARENT, AFTER = range(10)
COLUMNS = 10


@kernel
def _is_dominated(labels: IntArray, heads: IntArray, at: int, fresh: int) -> bool:
    """Whether a label in the list at heads[at] dominates `fresh`. Removes the labels that `fresh` dominates.

    One dominates the other if every completion of the other is a completion of it too. In a lower group the next
    special stage has one live micro-batch less. That makes up for the bytes that the open group of the other has
    not added up yet.
    """
    before, other = -1, heads[at]
    delay, load, group = labels[fresh, DELAY], labels[fresh, LOAD], labels[fresh, GROUP]
    held = labels[fresh, HELD]
    peak, current = held + labels[fresh, PEAK], held + labels[fresh, CURRENT]
    while other >= 0:
        other_held = labels[other, HELD]
        other_peak, other_current = other_held + labels[other, PEAK], other_held + labels[other, CURRENT]
        other_group = labels[other, GROUP]
        if (
            labels[other, DELAY] <= delay
            and labels[other, LOAD] <= load
            and other_held <= held
            and other_peak <= peak
            and (other_group < group or other_current <= current)
        ):
            if before >= 0:
                # What dominates once dominates often: it moves to the front.
                labels[before, AFTER] = labels[other, AFTER]
                labels[other, AFTER] = heads[at]
                heads[at] = other
            return True
        if (
            delay <= labels[other, DELAY]
            and load <= labels[other, LOAD]
            and held <= other_held
            and peak <= other_peak
            and (group < other_group or current <= other_current)
        ):
            if before >= 0:
                labels[before, AFTER] = labels[other, AFTER]
            else:
                heads[at] = labels[other, AFTER]
        else:
            before = other
        other = labels[other, AFTER]
    return False


@kernel
def _below(ascending: IntArray, value: int) -> int:
    """The number of entries below the value.

    numpy's searchsorted would do, but numba takes seconds to compile it.
    """
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def reach(
    table: RunTable,
    memory: int,
    period: int,
    least: int,
    most: int,
    estimate: Estimate,
    wanted: int,
    most_labels: int,
) -> tuple[int, int, IntArray, BoolArray]:
    """Allocations of all layers on least … most GPUs whose estimate meets the period; none dominates another.

    wanted: stop at this number of allocations.

    Returns the number found (-1: none, and the search gave up at most_labels), the number of labels, and for each
    allocation its bounds, shape (found, L + 1) padded with L, and its special stages, shape (found, L).
    """
    length = table.layers.shape[1] - 1
    steps = SHORT_EXCESSES if length <= SHORT else EXCESSES
    # Arrays are made here, not in the kernel: numba takes a second to compile what makes them.
    needs = np.full((length + 1, 2, steps, most, 3), FAR, np.int64)
    head = np.full((length + 1, most, 3), -1, np.int64)
    ends = np.empty(wanted, np.int64)
    least_needs(table, memory, period, needs, estimate)
    needs = np.ascontiguousarray(needs.transpose(1, 3, 2, 0, 4))
    if cannot_end(table, memory, period, needs, NOTHING_BEHIND, length, 0, most - 1):
        return 0, 1, np.full((0, length + 1), length, np.int64), np.zeros((0, length), np.bool_)
    labels = np.empty((most_labels + 1, COLUMNS), np.int64)
    found, count = reach_labels(table, memory, period, least, estimate, needs, head, ends, labels)
    bounds = np.full((max(0, found), length + 1), length, np.int64)
    on_special = np.zeros((max(0, found), length), np.bool_)
    trace(labels, ends, bounds, on_special)
    return found, count, bounds, on_special


@kernel
def trace(labels: IntArray, ends: IntArray, bounds: IntArray, on_special: BoolArray) -> None:
    """Fill the bounds and the special stages of each allocation, from the label of its last stage on."""
    for i in range(len(bounds)):
        label, stage = ends[i], 0
        while labels[label, PARENT] >= 0:
            bounds[i, stage] = labels[label, FIRST]
            on_special[i, stage] = labels[label, STATE] == BESIDE
            label = labels[label, PARENT]
            stage += 1


@kernel
def reach_labels(
    table: RunTable,
    memory: int,
    period: int,
    least: int,
    estimate: Estimate,
    needs: IntArray,
    head: IntArray,
    ends: IntArray,
    labels: IntArray,
) -> tuple[int, int]:
    """The loops of reach. needs: of least_needs. head: the first label of each layer, normals and state.

    ends: room for the labels of complete allocations. labels: room for one more than the search may make. Returns
    the number found or -1, and the number of labels.
    """
    length, most, wanted = head.shape[0] - 1, head.shape[1], len(ends)
    normals = most - 1
    work, every = table.layers[WORK], table.layers[EVERY_WORK, 0]
    labels[0] = 0
    labels[0, FIRST], labels[0, PARENT], labels[0, AFTER] = length, -1, -1
    labels[0, STATE] = FREE if least > 1 else USED
    count = 1
    head[length, 0, labels[0, STATE]] = 0
    found = 0
    complete = True
    for end in range(length, 0, -1):
        if found == wanted or not complete:
            break
        for used in range(most):
            for state in range(3):
                label = head[end, used, state]
                while label >= 0 and found < wanted and complete:
                    origin = Front(
                        labels[label, DELAY],
                        labels[label, GROUP],
                        labels[label, LOAD],
                        labels[label, HELD],
                        labels[label, PEAK],
                        labels[label, CURRENT],
                    )
                    for kind in range(2):
                        special = kind == 1
                        if not special and used == normals:
                            continue
                        beside = special and state == BESIDE
                        sent, behind = pass_cut(
                            table, period, origin, end, beside and estimate.in_place, estimate.both_ways
                        )
                        if not sent:
                            continue
                        reached = used if special else used + 1
                        after = BESIDE if special else (FREE if state == FREE else USED)
                        # What is left must fit into the time of the normal GPUs left and of the special one.
                        time_left = (normals - reached) * (period - every) + period - origin.load
                        if special:
                            nearest = end - 1 if work[end] + every <= time_left else -1
                        else:
                            nearest = min(end, _below(work, time_left + 1)) - 1
                        for first in range(nearest, -1, -1):
                            status, front = add_stage(
                                table, memory, period, estimate, behind, first, end, special, beside
                            )
                            if status == STOP:
                                break
                            if status != FITS:
                                continue
                            if first == 0 and least > 1 and reached + (after != FREE) < least:
                                continue
                            labels[count, DELAY], labels[count, LOAD] = front.delay, front.load
                            labels[count, HELD], labels[count, PEAK] = front.held, front.peak
                            labels[count, CURRENT], labels[count, GROUP] = front.current, front.group
                            if cannot_end(table, memory, period, needs, front, first, kind, normals - reached):
                                continue
                            if _is_dominated(labels, head[first, reached], after, count):
                                continue
                            labels[count, FIRST], labels[count, STATE] = first, after
                            labels[count, PARENT], labels[count, AFTER] = label, head[first, reached, after]
                            head[first, reached, after] = count
                            if first == 0 and found < wanted:
                                ends[found] = count
                                found += 1
                            count += 1
                            if count == len(labels) - 1:
                                complete = False
                                break
                        if not complete:
                            break
                    label = labels[label, AFTER]
    return (found if found > 0 or complete else -1), count
