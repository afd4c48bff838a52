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
FAR = 2**62


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


@kernel
def _oplus(delay: int, duration: int, period: int) -> int:
    closed = -(-delay // period) * period
    return delay + duration if delay + duration <= closed else closed + duration


@kernel
def _find(slots: IntArray, keys: IntArray, key: int) -> int:
    """The slot that holds `key`, or the empty one where it goes (open addressing; a power of two of slots)."""
    mask = len(slots) - 1
    slot = (key * 0x9E3779B97F4A7C1) >> 20 & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def grid_dp(
    table: RunTable, memory: int, period: int, gpus: int, grid: ValueGrid
) -> tuple[int, int, IntArray, BoolArray]:
    """MadPipe-DP(period): its value (-1: infinite), states, and the bounds and special stages of an allocation.

    A state is (l, p, t_P, m_P, V) with the least max(U, C, t_P + U of special stages) of the stages behind it; the
    value is the least max of that and t_P at l = 0, which is the recursion of section 4.2.2 from the other end. A
    value beyond the grid is left out.
    """
    length = table.layers.shape[1] - 1
    total = most_work(table)
    farthest = total + int(table.layers[CUT_FORWARD].sum() + table.layers[CUT_BACKWARD].sum())
    slots = np.full(1 << 16, -1, np.int64)
    size = 1 << 15
    keys, value = np.empty(size, np.int64), np.empty(size, np.int64)
    parent, after = np.empty(size, np.int64), np.empty(size, np.int64)
    kind = np.zeros(size, np.bool_)
    head = np.full(length + 1, -1, np.int64)
    count = 1
    keys[0], value[0], parent[0], after[0] = (
        (length * gpus + gpus - 1) * (grid.loads * grid.memories * grid.delays),
        0,
        -1,
        -1,
    )
    slots[_find(slots, keys, keys[0])] = 0
    head[length] = 0
    best, last = FAR, -1
    for end in range(length, 0, -1):
        state = head[end]
        while state >= 0:
            if value[state] >= best:
                state = after[state]
                continue
            rest, at_delay = divmod(keys[state], grid.delays)
            rest, at_memory = divmod(rest, grid.memories)
            rest, at_load = divmod(rest, grid.loads)
            normals = rest % gpus
            delay = -(-at_delay * farthest // (grid.delays - 1))
            held = -(-at_memory * memory // (grid.memories - 1))
            load = -(-at_load * total // (grid.loads - 1))
            for first in range(end - 1, -1, -1):
                duration = stage_ns(table, WORK, first, end)
                cut = table.layers[CUT_FORWARD, first] + table.layers[CUT_BACKWARD, first]
                if duration >= best:
                    break
                reached = max(value[state], duration, cut)
                if reached >= best:
                    continue
                group = max(1, -(-(delay + duration) // period))
                fixed = (
                    table.stages[end, first, WEIGHTS]
                    + table.stages[end, first, WORKSPACE]
                    + table.stages[end, first, ONCE]
                )
                fixed += table.layers[CUT_HELD, first] + table.layers[CUT_HELD, end]
                behind = _index(
                    _oplus(_oplus(delay, duration, period), cut, period), farthest, grid.delays, grid.rounding
                )
                if behind >= grid.delays:
                    continue
                for special in range(2):
                    now_load, now_held, left, highest = at_load, at_memory, normals, reached
                    if special == 0:
                        if normals == 0 or fixed + group * table.stages[end, first, EACH] > memory:
                            continue
                        left -= 1
                    else:
                        bytes_then = held + fixed + (group - 1) * table.stages[end, first, EACH]
                        now_load = _index(load + duration, total, grid.loads, grid.rounding)
                        if bytes_then > memory or now_load >= grid.loads:
                            continue
                        now_held = _index(bytes_then, memory, grid.memories, grid.rounding)
                        if now_held >= grid.memories or load + duration >= best:
                            continue
                        # T_S has t_P + U(k, l) as it is, which a value rounded down can be below.
                        highest = max(highest, load + duration)
                    key = (first * gpus + left) * grid.loads + now_load
                    key = (key * grid.memories + now_held) * grid.delays + behind
                    slot = _find(slots, keys, key)
                    found = slots[slot]
                    if found >= 0 and value[found] <= highest:
                        continue
                    if found < 0:
                        found = count
                        count += 1
                        slots[slot] = found
                        keys[found], after[found] = key, head[first]
                        head[first] = found
                    value[found], parent[found], kind[found] = highest, state, special == 1
                    if first == 0:
                        final = max(highest, -(-now_load * total // (grid.loads - 1)))
                        if final < best:
                            best, last = final, found
                    if count == size:
                        size *= 2
                        keys, value = _longer(keys, size), _longer(value, size)
                        parent, after = _longer(parent, size), _longer(after, size)
                        wider = np.zeros(size, np.bool_)
                        assign(wider, kind)
                        kind = wider
                        slots = np.full(4 * size, -1, np.int64)
                        for i in range(count):
                            slots[_find(slots, keys, keys[i])] = i
            state = after[state]
    bounds, on_special = np.full(length + 1, length, np.int64), np.zeros(length, np.bool_)
    stages = 0
    while last >= 0 and parent[last] >= 0:
        bounds[stages] = keys[last] // (gpus * grid.loads * grid.memories * grid.delays)
        on_special[stages] = kind[last]
        stages += 1
        last = parent[last]
    return (best if best < FAR else -1), count, bounds[: stages + 1], on_special[:stages]


@kernel
def _longer(column: IntArray, size: int) -> IntArray:
    larger = np.empty(size, np.int64)
    assign(larger, column)
    return larger
