"""PipeDream's own cost model by bisection: can every stage and cut keep within a target?"""

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_pipedream.paper_costs import fits, slower_of_cuts, stage_s
from pipebench_pipedream.paper_model import Found, Level, Part, Rules
from pipebench_pipedream.states import States

NONE = 2**40
PRECISION = 1e-13


@kernel
def within(  # pragma: no cover - compiled
    target: float,
    compute: FloatArray,
    activations: FloatArray,
    parameters: FloatArray,
    sent: FloatArray,
    before: NDArray[np.bool_],
    counts: IntArray,
    machines: int,
    bandwidth: float,
    released: bool,
    charged: bool,
    limit: float,
) -> tuple[IntArray, IntArray, IntArray, FloatArray, int, int]:
    """fewest[j, m]: least number of stages for state j on exactly m machines, none slower than `target`.

    Arrays of shape (states,), before (states, states), counts ascending. Returns fewest, the state before the last
    stage (-1: one stage), its replicas, its time (each (states, machines+1)), states reached, transitions tried.
    """
    n = before.shape[0]
    fewest = np.full((n, machines + 1), NONE)
    split = np.full((n, machines + 1), -1)
    last = np.zeros((n, machines + 1), dtype=np.int64)
    slowest = np.zeros((n, machines + 1))
    reached = 0
    transitions = 0
    for j in range(n):
        for k in range(-1, j):
            if k >= 0 and not before[k, j]:
                continue
            stage_parameters = parameters[j] - (parameters[k] if k >= 0 else 0.0)
            stage_compute = compute[j] - (compute[k] if k >= 0 else 0.0)
            held = activations[j] - (activations[k] if k >= 0 else 0.0) + stage_parameters
            for d in counts:
                if d > machines:
                    break
                stage = stage_s(stage_compute, stage_parameters, d, bandwidth, 1, released)
                if charged and k >= 0:
                    leaving = sent[j] if j < n - 1 else 0.0
                    stage = slower_of_cuts(stage, sent[k], leaving, d, bandwidth, released)
                if stage > target:
                    continue
                for m in range(d, machines + 1):
                    if (k < 0) != (m == d) or not fits(held, machines - m, d, released, limit):
                        continue
                    transitions += 1
                    stages = 1 if k < 0 else fewest[k, m - d] + 1
                    if stages < fewest[j, m]:
                        fewest[j, m] = stages
                        split[j, m] = k
                        last[j, m] = d
                        slowest[j, m] = stage
        for m in range(machines + 1):
            if fewest[j, m] < NONE:
                reached += 1
    return fewest, split, last, slowest, reached, transitions


def bisect(states: States, level: Level, rules: Rules) -> Found | None:
    """The smallest bottleneck within one part in 10^13; each success lowers the top to what it reached."""
    counts = np.array([count for count in rules.counts if count <= level.machines], dtype=np.int64)
    reached = transitions = 0
    found: tuple[float, tuple[Part, ...]] | None = None
    low, high, target = 0.0, np.inf, np.inf
    while low < high * (1 - PRECISION):
        fewest, split, last, slowest, states_reached, tried = within(
            target,
            states.compute_s,
            states.activation_bytes,
            states.parameter_bytes,
            states.sent_bytes,
            states.before,
            counts,
            level.machines,
            level.bandwidth_bytes_s,
            rules.released,
            rules.charged,
            rules.limit_bytes,
        )
        reached, transitions = reached + states_reached, transitions + tried
        if fewest[-1, level.machines] < NONE:
            found = _walk(split, last, slowest, level.machines)
            high = found[0]
        elif found is None:
            return None
        else:
            low = target
        target = (low + high) / 2
    return Found(high, found[1], reached, transitions) if found else None


def _walk(split: IntArray, last: IntArray, slowest: FloatArray, machines: int) -> tuple[float, tuple[Part, ...]]:
    bottleneck, end, parts = 0.0, len(split) - 1, []
    while end >= 0:
        before, replicas = int(split[end, machines]), int(last[end, machines])
        bottleneck = max(bottleneck, float(slowest[end, machines]))
        machines -= replicas
        parts.append(Part(before + 1, end, (replicas,), (machines,)))
        end = before
    return bottleneck, tuple(reversed(parts))
