"""MadPipe-DP on its grid (MadPipe section 4.2.2; values of section 5.1), over the states that are reached."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import assign, kernel
from pipebench.costs.quantise import IntArray
from pipebench_madpipe.allocation import BoolArray
from pipebench_madpipe.stage_table import (
    CUT_BACKWARD,
    CUT_FORWARD,
    CUT_HELD,
    EACH,
    EVERY_WORK,
    ONCE,
    WEIGHTS,
    WORK,
    WORKSPACE,
    RunTable,
    stage_ns,
)

UP, NEAREST, DOWN = 0, 1, 2
NO_LIMIT = 2**62
WIDENING = 32
"""How much farther above what is known each search for the least value looks than the one before."""
KEY, VALUE, PARENT, AFTER = range(4)
"""Columns of states. PARENT: twice the state behind it, and 1 more when the stage between them is special."""


class ValueGrid(NamedTuple):
    """Equally spaced values from 0: `loads` of t_P up to U(1, L), `memories` of m_P up to M, `delays` of V up to
    U(1, L) + the sum of C; rounding: UP, NEAREST or DOWN. U(1, L) is that of `most_work`.
    """

    loads: int
    memories: int
    delays: int
    rounding: int


@kernel
def most_work(table: RunTable) -> int:
    """ns of all layers, each a stage of its own: no partition takes longer. U(1, L) where stages add nothing."""
    length = table.layers.shape[1] - 1
    return int(table.layers[WORK, length] + length * table.layers[EVERY_WORK, 0])


@kernel
def _index(value: int, end: int, count: int, rounding: int) -> int:
    """The number of the grid value for `value`. A number of `count` or more is beyond the grid."""
    if end == 0:
        return 0 if value == 0 else count
    scaled = value * (count - 1)
    if rounding == UP:
        return -(-scaled // end)
    if rounding == DOWN:
        return scaled // end
    return (2 * scaled + end) // (2 * end)


class GridValues(NamedTuple):
    """What the numbers of a grid stand for: loads (ns), memories (bytes), delays (ns), ascending from 0.

    load_loss, memory_loss: the most that one rounding takes away.
    """

    loads: IntArray
    memories: IntArray
    delays: IntArray
    rounding: int
    load_loss: int
    memory_loss: int


def grid_values(table: RunTable, memory: int, grid: ValueGrid) -> GridValues:
    """The values of this grid for these layers and bytes of memory."""
    total = int(most_work(table))
    farthest = total + int(table.layers[CUT_FORWARD].sum() + table.layers[CUT_BACKWARD].sum())
    ends = (total, grid.loads), (memory, grid.memories), (farthest, grid.delays)
    loads, memories, delays = (-(-np.arange(count, dtype=np.int64) * end // (count - 1)) for end, count in ends)
    lossy = grid.rounding != UP
    return GridValues(
        loads,
        memories,
        delays,
        grid.rounding,
        lossy * -(-total // (grid.loads - 1)),
        lossy * -(-memory // (grid.memories - 1)),
    )


@kernel
def _oplus(delay: int, duration: int, closed: int) -> int:
    """The delay before a stage or cut of this duration; closed: `delay` rounded up to whole periods."""
    return delay + duration if delay + duration <= closed else closed + duration


@kernel
def _find(slots: IntArray, states: IntArray, key: int) -> int:
    """The slot that holds `key`, or the empty one where it goes (open addressing; a power of two of slots)."""
    mask = len(slots) - 1
    slot = (key * 0x9E3779B97F4A7C1) >> 20 & mask
    while slots[slot] >= 0 and states[slots[slot], KEY] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def least_bytes(table: RunTable, values: GridValues, period: int, least: IntArray) -> None:
    """Fill least[l, number of V] with bytes that the stages before layer l hold together, whichever they are.

    Weights count as those of one stage, and so do the activations of each further live micro-batch, over the
    layers that must keep it: a stage keeps ceil((V + U) / T) of them (one less on the special GPU), and V + U is
    at least the V given and the work from its first layer to l. Where V is rounded down, only the V given counts.
    """
    for first in range(1, len(least)):
        stage = table.stages[first, 0]
        for number in range(len(values.delays)):
            held = stage[WEIGHTS] + stage[ONCE]
            live, layers = 1, first
            while layers > 0:
                delay = values.delays[number]
                if values.rounding == UP:
                    delay += table.layers[WORK, first] - table.layers[WORK, layers - 1]
                if delay > live * period:
                    held += table.stages[layers, 0, EACH]
                    live += 1
                elif values.rounding == UP:
                    layers -= 1
                else:
                    layers = 0
            least[first, number] = held


@kernel
def _leads_on(
    table: RunTable,
    values: GridValues,
    memory: int,
    least: IntArray,
    at: tuple[int, int, int, int, int],
    best: int,
) -> bool:
    """Whether a value below `best` may be reached from state (l, p, number of t_P, of m_P, of V).

    The layers before l and the load of the special GPU are the work of p + 1 GPUs, so that one of them works for
    at least their mean; and their bytes must fit in what these GPUs have left. Where values are rounded down, each
    stage may lose a step.
    """
    first, normals, load, held, delay = at
    work = values.loads[load] - first * values.load_loss + table.layers[WORK, first]
    if work > (best - 1) * (normals + 1):
        return False
    left = (normals + 1) * memory - values.memories[held] + first * values.memory_loss
    return first == 0 or bool(least[first, delay] <= left)


@kernel
def _explore(
    table: RunTable,
    values: GridValues,
    memory: int,
    period: int,
    gpus: int,
    below: int,
    least: IntArray,
    states: IntArray,
    slots: IntArray,
    head: IntArray,
) -> tuple[int, int, int, IntArray]:
    """The least value below `below`, its state (-1: none), how many states there are, and the states."""
    length = table.layers.shape[1] - 1
    loads, memories, delays = len(values.loads), len(values.memories), len(values.delays)
    total, farthest = values.loads[loads - 1], values.delays[delays - 1]
    count = 1
    states[0, KEY] = (length * gpus + gpus - 1) * (loads * memories * delays)
    states[0, VALUE], states[0, PARENT], states[0, AFTER] = 0, -1, -1
    slots[_find(slots, states, states[0, KEY])] = 0
    head[length] = 0
    best, last = min(below, farthest + 1), -1
    for end in range(length, 0, -1):
        state = head[end]
        while state >= 0:
            here, number = states[state], state
            state = here[AFTER]
            rest, at_delay = divmod(here[KEY], delays)
            rest, at_memory = divmod(rest, memories)
            rest, at_load = divmod(rest, loads)
            normals = rest % gpus
            if here[VALUE] >= best or not _leads_on(
                table, values, memory, least, (end, normals, at_load, at_memory, at_delay), best
            ):
                continue
            so_far = here[VALUE]
            delay, held, load = values.delays[at_delay], values.memories[at_memory], values.loads[at_load]
            # Whole periods of the delay, of the delay with the stage, and of the stage: they grow with the stage.
            begun = -(-delay // period)
            group, whole = max(1, begun), 0
            for first in range(end - 1, -1, -1):
                duration = stage_ns(table, WORK, first, end)
                if duration >= best:
                    break
                cut = table.layers[CUT_FORWARD, first] + table.layers[CUT_BACKWARD, first]
                reached = max(so_far, duration, cut)
                while delay + duration > group * period:
                    group += 1
                while duration > whole * period:
                    whole += 1
                if reached >= best:
                    continue
                bytes_ = table.stages[end, first]
                fixed = bytes_[WEIGHTS] + bytes_[WORKSPACE] + bytes_[ONCE]
                fixed += table.layers[CUT_HELD, first] + table.layers[CUT_HELD, end]
                as_normal = normals > 0 and fixed + group * bytes_[EACH] <= memory
                bytes_then = held + fixed + (group - 1) * bytes_[EACH]
                as_special = bytes_then <= memory and load + duration < best
                if not (as_normal or as_special):
                    continue
                later = _oplus(delay, duration, begun * period)
                closed = begun * period if delay + duration <= begun * period else (begun + whole) * period
                behind = _index(_oplus(later, cut, closed), farthest, delays, values.rounding)
                if behind >= delays:
                    continue
                for special in range(2):
                    now_load, now_memory, left, highest = at_load, at_memory, normals, reached
                    if special == 0:
                        if not as_normal:
                            continue
                        left -= 1
                    else:
                        if not as_special:
                            continue
                        now_load = _index(load + duration, total, loads, values.rounding)
                        now_memory = _index(bytes_then, memory, memories, values.rounding)
                        if now_load >= loads or now_memory >= memories:
                            continue
                        # T_S has t_P + U(k, l) as it is, which a value rounded down can be below.
                        highest = max(highest, load + duration)
                    if not _leads_on(
                        table, values, memory, least, (first, left, now_load, now_memory, behind), best
                    ):
                        continue
                    key = (first * gpus + left) * loads + now_load
                    key = (key * memories + now_memory) * delays + behind
                    slot = _find(slots, states, key)
                    found = slots[slot]
                    if found >= 0 and states[found, VALUE] <= highest:
                        continue
                    if found < 0:
                        found = count
                        count += 1
                        slots[slot] = found
                        states[found, KEY], states[found, AFTER] = key, head[first]
                        head[first] = found
                    states[found, VALUE], states[found, PARENT] = highest, 2 * number + special
                    if first == 0:
                        final = max(highest, values.loads[now_load])
                        if final < best:
                            best, last = final, found
                    if count == len(states):
                        more = np.empty((2 * count, 4), np.int64)
                        assign(more[:count], states)
                        states = more
                        slots = np.full(8 * count, -1, np.int64)
                        for i in range(count):
                            slots[_find(slots, states, states[i, KEY])] = i
    return best, last, count, states


def grid_dp(
    table: RunTable, memory: int, period: int, gpus: int, grid: ValueGrid, below: int = NO_LIMIT
) -> tuple[int, int, IntArray, BoolArray]:
    """MadPipe-DP(period): its value (-1: none below `below`), states, and the bounds and special stages of it.

    A state is (l, p, t_P, m_P, V) with the least max(U, C, t_P + U of special stages) of the stages behind it; the
    value is the least max of that and t_P at l = 0, which is the recursion of section 4.2.2 from the other end. A
    value beyond the grid is left out, and so are states that lead to no value below the best one yet: with a
    small `below` few are left. Of allocations of the same value, which one is returned may hang on `below`.
    """
    length = table.layers.shape[1] - 1
    values = grid_values(table, memory, grid)
    least = np.zeros((length + 1, grid.delays), np.int64)
    least_bytes(table, values, period, least)
    best, last, count, states = _explore(
        table,
        values,
        memory,
        period,
        gpus,
        below,
        least,
        np.empty((1 << 15, 4), np.int64),
        np.full(1 << 16, -1, np.int64),
        np.full(length + 1, -1, np.int64),
    )
    value = int(best) if last >= 0 else -1
    bounds, special = [], []
    per_layer = gpus * grid.loads * grid.memories * grid.delays
    while last > 0:
        bounds.append(int(states[last, KEY]) // per_layer)
        special.append(bool(states[last, PARENT] % 2))
        last = int(states[last, PARENT]) // 2
    return value, int(count), np.array([*bounds, length], np.int64), np.array(special, np.bool_)


def least_value(
    table: RunTable, memory: int, period: int, gpus: int, grid: ValueGrid, low: int, below: int = NO_LIMIT
) -> tuple[int, int, IntArray, BoolArray]:
    """The same as grid_dp, by searches below ever larger limits; the states are those of all of them.

    low: at least 1, about what the value may be, for the first limit. The result does not rest on it, but for
    which of several allocations of the same value is returned.
    """
    end, count = below, 0
    if below == NO_LIMIT:
        layers = table.layers
        end = int(most_work(table)) + int(layers[CUT_FORWARD].sum() + layers[CUT_BACKWARD].sum()) + 1
    margin = 1 + low // 32
    while True:
        limit = min(low + margin, end)
        value, states, bounds, special = grid_dp(table, memory, period, gpus, grid, limit)
        count += states
        if value >= 0 or limit == end:
            return value, count, bounds, special
        margin *= WIDENING
