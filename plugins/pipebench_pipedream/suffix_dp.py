"""Kernels over suffixes of a linear order: by number of stages (PD-K) and by target period (PD-BS)."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

UNREACHED = np.int64(2**62)


@kernel
def smallest_bottleneck(
    period: IntArray,
    compute: IntArray,
    room: IntArray,
    replicas: IntArray,
    devices: int,
    fewest: int,
    stages: int,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[IntArray, IntArray, IntArray, int, int]:
    """dp[k, i, q]: smallest bottleneck of the operators from place i on, in k stages on exactly q devices.

    Shapes: period and room (c, n+1, n+1), compute (c, n+1) sums up to each place, replicas (c,). The first
    stage of such a suffix holds min(k, micro_batches) micro-batches, or, where counts_stages is false,
    ceil(q / d) of them. A whole plan has from `fewest` to `stages` stages; stages = 0 leaves their number open
    (only where counts_stages is false), and all of dp is one layer. Returns dp, the end of the first stage
    and its choice of replicas (each of shape (stages+1, n+1, devices+1)), states reached, transitions tried. Of
    equal bottlenecks the one with the longest first stage, then with the longest second one, and so on.
    Source: PipeDream (SOSP 2019) section 3.1, with the stage count as a dimension (GraphPipe's SPP baseline).
    """
    choices, n = period.shape[0], period.shape[1] - 1
    dp = np.full((stages + 1, n + 1, devices + 1), UNREACHED)
    end = np.zeros((stages + 1, n + 1, devices + 1), dtype=np.int64)
    chosen = np.zeros((stages + 1, n + 1, devices + 1), dtype=np.int64)
    dp[0, n, 0] = 0
    least = np.full((stages + 1, n + 1), devices + 1)  # devices of the suffixes that are reached
    least[0, n] = 0
    best = UNREACHED
    transitions = 0
    for k in range(min(1, stages), stages + 1):
        before = max(0, k - 1)
        live = min(k, micro_batches)
        for i in range(n - 1, -1, -1):
            for c in range(choices):
                d = replicas[c]
                for j in range(n, i, -1):
                    # Only a smaller bottleneck than that of a whole plan is of use.
                    if compute[c, j] - compute[c, i] >= best:
                        continue
                    stage = period[c, i, j]
                    if stage >= best or room[c, i, j] < 1:
                        continue
                    most = devices
                    if counts_stages:
                        if room[c, i, j] < live:
                            continue
                    else:
                        most = min(devices, room[c, i, j] * d)
                    transitions += max(0, most + 1 - d)
                    for q in range(d + least[before, j], most + 1):
                        value = max(stage, dp[before, j, q - d])
                        if value < dp[k, i, q]:
                            dp[k, i, q] = value
                            end[k, i, q] = j
                            chosen[k, i, q] = c
            for q in range(devices + 1):
                if dp[k, i, q] < UNREACHED:
                    least[k, i] = q
                    break
        if k >= fewest:
            for q in range(devices + 1):
                best = min(best, dp[k, 0, q])
    states = 0
    for k in range(stages + 1):
        for i in range(n):
            for q in range(devices + 1):
                if dp[k, i, q] < UNREACHED:
                    states += 1
    return dp, end, chosen, states, transitions


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
    so the least number is enough to know. Shapes as in `smallest_bottleneck`. Returns fewest, the
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
