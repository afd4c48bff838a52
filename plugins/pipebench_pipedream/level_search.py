"""One level of PipeDream's DP over states: the smallest bottleneck of every part on every number of machines."""

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_pipedream.paper_costs import fits, slower_of_cuts, stage_s


@kernel
def solve_level(  # pragma: no cover - compiled
    base: FloatArray,
    activations: FloatArray,
    parameters: FloatArray,
    sent: FloatArray,
    before: NDArray[np.bool_],
    starts: int,
    counts: IntArray,
    machines: int,
    bandwidth: float,
    machines_inside: int,
    released: bool,
    charged: bool,
    idle: bool,
    limit: float,
) -> tuple[FloatArray, IntArray, IntArray, int, int]:
    """best[i, j, m]: smallest bottleneck in s of state j without state i - 1 (i = 0: all of it) on m machines.

    base, (states+1, states): seconds of [i, j] on one machine of this level, inf where there is no such part.
    activations, parameters, sent: cumulative, (states,). before: (states, states). starts: how many values of i.
    counts: replicas to choose from, ascending. All machines are used unless `idle`. limit: bytes, inf for none.
    Returns best, the state before the last stage (-1: one stage, -2: as with a machine less) and its replicas,
    each (starts, states, machines+1), states reached, transitions tried.
    Source: SOSP 2019 section 3.1; `released`: optimizer_graph_hierarchical of the published code.
    """
    n = before.shape[0]
    best = np.full((starts, n, machines + 1), np.inf)
    split = np.full((starts, n, machines + 1), -1, dtype=np.int64)
    last = np.zeros((starts, n, machines + 1), dtype=np.int64)
    reached = 0
    transitions = 0
    for i in range(starts):
        for j in range(i, n):
            if base[i, j] == np.inf:
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
            for k in range(j):
                if not before[k, j] or base[k + 1, j] == np.inf:
                    continue
                if i > 0:
                    if k < i or before[k, i - 1]:
                        continue
                    if not released and not before[i - 1, k]:
                        continue
                compute = base[k + 1, j]
                stage_parameters = parameters[j] - parameters[k]
                held = activations[j] - activations[k] + stage_parameters
                for d in counts:
                    if d >= machines:
                        break
                    stage = stage_s(compute, stage_parameters, d, bandwidth, 1, released)
                    if charged:
                        leaving = sent[j] if j < n - 1 else 0.0
                        stage = slower_of_cuts(stage, sent[k], leaving, d, bandwidth, released)
                    for m in range(d + 1, machines + 1):
                        if stage >= best[i, j, m]:
                            continue
                        if not fits(held, machines - m, d, released, limit):
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
    return best, split, last, reached, transitions
