"""One level of PipeDream's DP over states: the smallest bottleneck of every part on every number of machines."""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_pipedream.paper_costs import fits, slower_of_cuts, stage_s
from pipebench_pipedream.states import Words, leads


class LevelTables(NamedTuple):
    """What the kernel reads of the states (`States`) and the machines of a level.

    base: seconds of [i, j] on one machine of this level, (states+1, states), inf where there is no such part. One
    row where only whole states are asked for: that of i = 0, of which parts are differences.
    activations, parameters, sent: (states,), cumulative.
    counts: replicas to choose from, ascending.
    """

    base: FloatArray
    activations: FloatArray
    parameters: FloatArray
    sent: FloatArray
    before: Words
    counts: IntArray


SLACK = 1e-9
"""Relative slack of bounds that are rounded otherwise than what they bound."""


class Window(NamedTuple):
    """What is of use: bottlenecks up to `most`, each state on `fewest` to `widest` machines, (states,)."""

    most: float
    fewest: IntArray
    widest: IntArray


class LevelTable(NamedTuple):
    """What is found of each part [i, j] on m machines; the shape is (starts, states, machines+1).

    best: smallest bottleneck in s of state j without state i - 1 (i = 0: all of it), inf where there is none.
    split: the state before the last stage; -1: one stage, -2: as with a machine less. last: its replicas.
    """

    best: FloatArray
    split: IntArray
    last: IntArray


def empty_table(starts: int, states: int, machines: int) -> LevelTable:
    """Made here, not in the kernel: numba takes a second to compile what makes arrays."""
    shape = starts, states, machines + 1
    return LevelTable(np.full(shape, np.inf), np.full(shape, -1), np.zeros(shape, np.int64))


@kernel
def solve_level(  # pragma: no cover - compiled
    tables: LevelTables,
    window: Window,
    found: LevelTable,
    bandwidth: float,
    machines_inside: int,
    released: bool,
    charged: bool,
    idle: bool,
    limit: float,
) -> tuple[int, int]:
    """Fill `found`, which is empty. All machines are used unless `idle`. limit: bytes, inf for none.

    Bottlenecks outside of the window are left out. Of equal ones that with the first state before the last stage,
    then with the fewest replicas. Returns states reached, transitions tried.
    Source: SOSP 2019 section 3.1; `released`: optimizer_graph_hierarchical of the published code.
    """
    best, split, last = found.best, found.split, found.last
    starts, machines = best.shape[0], best.shape[2] - 1
    base, before, counts = tables.base, tables.before, tables.counts
    activations, parameters, sent = tables.activations, tables.parameters, tables.sent
    most, fewest, widest = window.most, window.fewest, window.widest
    n = before.shape[0]
    parts = base.shape[0] > 1
    reached = 0
    transitions = 0
    for i in range(starts):
        for j in range(i, n):
            if base[i, j] == np.inf or fewest[j] > widest[j]:
                continue
            before_i_parameters = parameters[i - 1] if i > 0 else 0.0
            before_i_activations = activations[i - 1] if i > 0 else 0.0
            whole_parameters = parameters[j] - before_i_parameters
            whole_held = activations[j] - before_i_activations + whole_parameters
            for d in counts:
                if d <= machines and fits(whole_held, machines - d, d, released, limit):
                    best[i, j, d] = stage_s(base[i, j], whole_parameters, d, bandwidth, machines_inside, released)
                    last[i, j, d] = d
            if idle:
                for m in range(2, machines + 1):
                    if best[i, j, m - 1] < best[i, j, m]:
                        best[i, j, m] = best[i, j, m - 1]
                        split[i, j, m] = -2
            leaving = sent[j] if j < n - 1 else 0.0
            from_least, to_most, until = fewest[j], widest[j], base[0, j]
            for word in range(j // 64 + 1):
                bits = before[j, word]
                k = word * 64 - 1
                while bits:
                    while not bits & np.uint64(255):
                        bits >>= np.uint64(8)
                        k += 8
                    k += 1
                    here = bits & np.uint64(1)
                    bits >>= np.uint64(1)
                    if not here:
                        continue
                    room = to_most - fewest[k]
                    compute = base[k + 1, j] if parts else until - base[0, k]
                    if room < 1 or compute > most * room * (1 + SLACK) or compute == np.inf:
                        continue
                    if i > 0:
                        if k < i or leads(before, k, i - 1):
                            continue
                        if not released and not leads(before, i - 1, k):
                            continue
                    least = from_least - widest[k]
                    stage_parameters = parameters[j] - parameters[k]
                    held = activations[j] - activations[k] + stage_parameters
                    for d in counts:
                        if d < least or compute > most * d * (1 + SLACK):
                            continue
                        if d > room or d >= machines:
                            break
                        stage = stage_s(compute, stage_parameters, d, bandwidth, 1, released)
                        if charged:
                            stage = slower_of_cuts(stage, sent[k], leaving, d, bandwidth, released)
                        if stage > most:
                            continue
                        for m in range(max(d + fewest[k], from_least), min(d + widest[k], to_most) + 1):
                            if stage >= best[i, j, m]:
                                continue
                            if limit < np.inf and not fits(held, machines - m, d, released, limit):
                                continue
                            transitions += 1
                            value = max(best[i, k, m - d], stage)
                            if value < best[i, j, m]:
                                best[i, j, m] = value
                                split[i, j, m] = k
                                last[i, j, m] = d
            for m in range(machines + 1):
                if best[i, j, m] < np.inf:
                    reached += 1
    return reached, transitions
