"""Loads as Tarnawski's released program counts them, which are not the suite's.

A load is the sum of a device's latencies and of every output that enters or leaves it, each once. What crosses
costs its bytes over the bandwidth, latency of the link left out.
Source: Efficient Algorithms for Device Placement of DNN Graph Operators (NeurIPS 2020), and the released code.
"""

import numpy as np

from pipebench.costs.quantise import FloatArray
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.problem import Problem

SHARED = "->"
"""Tensors whose names are equal up to here are one output that is sent once (formats.profiles.tarnawski_graph)."""


def latency_s(problem: Problem, device_type: str, micro_batch: int) -> FloatArray:
    """Forward and backward of each operator; in the profile's seconds where it tells one size only."""
    costs = problem.profile.on(device_type)
    if len(costs.micro_batches) == 1:
        scale = micro_batch / costs.micro_batches[0]
        return np.array([(each.forward_s[0] + each.backward_s[0]) * scale for each in costs.operators])
    forward, backward = OperatorTimes(costs).at(micro_batch)
    return (forward + backward) / 1e9


def output_s(problem: Problem, micro_batch: int) -> dict[tuple[int, ...], float]:
    """Operators that make or read an output, with the seconds to send it (and its gradient) once."""
    graph = problem.profile.graph
    bandwidth = problem.cluster.flat(problem.cluster.size).bandwidth_bytes_s
    ends: dict[str, set[int]] = {}
    seconds: dict[str, float] = {}
    for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True):
        if producer < 0:
            continue
        name = tensor.name.split(SHARED)[0]
        ends.setdefault(name, set()).update((producer, *readers))
        moved = (tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample) * micro_batch
        seconds[name] = max(seconds.get(name, 0.0), (moved + tensor.fixed_bytes) / bandwidth)
    summed: dict[tuple[int, ...], float] = {}
    for name, joined in ends.items():
        key = tuple(sorted(joined))
        summed[key] = summed.get(key, 0.0) + seconds[name]
    return summed
