"""PD-BS: can every stage keep within a target period? Minimal in-flight as the value of a state."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

NONE = np.int64(2**40)


@kernel
def within_target(
    target: int,
    period: IntArray,
    compute: IntArray,
    room: IntArray,
    replicas: IntArray,
    devices: int,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[IntArray, IntArray, IntArray, int, int]:
    """fewest[i, q]: least number of stages for the operators from place i on, on exactly q devices.

    Every stage has a period of at most `target`. A stage with s - 1 behind it holds min(s, micro_batches)
    micro-batches, or ceil(q / d) where counts_stages is false. Fewer stages behind never take more memory,
    so the least number is enough to know. Shapes as in stage_count.smallest_bottleneck. Returns fewest, the
    end of the first stage, its choice of replicas (each (n+1, devices+1)), states reached, transitions tried.
    Source: the value is that of GraphPipe's DP (ASPLOS 2025), here for one whole linear order.
    """
    choices, n = period.shape[0], period.shape[1] - 1
    fewest = np.full((n + 1, devices + 1), NONE)
    end = np.zeros((n + 1, devices + 1), dtype=np.int64)
    chosen = np.zeros((n + 1, devices + 1), dtype=np.int64)
    fewest[n, 0] = 0
    states = 0
    transitions = 0
    for i in range(n - 1, -1, -1):
        for c in range(choices):
            d = replicas[c]
            for j in range(i + 1, n + 1):
                if compute[c, j] - compute[c, i] > target:
                    break
                if period[c, i, j] > target or room[c, i, j] < 1:
                    continue
                most = devices if counts_stages else min(devices, room[c, i, j] * d)
                for q in range(d, most + 1):
                    transitions += 1
                    stages = fewest[j, q - d] + 1
                    if stages > NONE or (counts_stages and min(stages, micro_batches) > room[c, i, j]):
                        continue
                    if stages < fewest[i, q]:
                        fewest[i, q] = stages
                        end[i, q] = j
                        chosen[i, q] = c
        for q in range(devices + 1):
            if fewest[i, q] < NONE:
                states += 1
    return fewest, end, chosen, states, transitions
