"""Every way to run every operator: plain or by an alternative, on each device type."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import FloatArray, IntArray, nanoseconds, seconds_at
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways on one device type, one row each; arrays of shape (rows,).

    operator: position in the graph. devices: that one replica takes. parameter_bytes: of the operator's own
    weights, on each device. fixed_bytes, saved_bytes (a sample), workspace_bytes: on each device.
    """

    sizes: Sequence[int]
    operator: IntArray
    devices: IntArray
    parameter_bytes: IntArray
    plain: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    fixed_bytes: IntArray
    saved_bytes: FloatArray
    workspace_bytes: IntArray
    forward_s: FloatArray
    backward_s: FloatArray

    def forward_ns(self, samples: int) -> IntArray:
        """Forward of one micro-batch with `samples` on each device, rounded as the costs are."""
        return nanoseconds(seconds_at(self.sizes, self.forward_s, samples))

    def run_ns(self, samples: int) -> IntArray:
        """Forward plus backward of one micro-batch."""
        return self.forward_ns(samples) + nanoseconds(seconds_at(self.sizes, self.backward_s, samples))

    def least(self, values: IntArray, operators: int) -> IntArray:
        """For each operator the smallest value among its ways, shape (operators,)."""
        smallest = np.full(operators, NEVER, dtype=values.dtype)
        np.minimum.at(smallest, self.operator, values)
        return smallest


def ways(problem: Problem) -> list[Ways]:
    """The ways on each device type of the cluster, those that contradict a pinned tensor_parallel left out.

    Without a pin the plain way takes one device for a replica; with one it takes as many as are pinned.
    """
    return [_on(problem, problem.profile.on(name)) for name in dict.fromkeys(problem.cluster.devices)]


def _on(problem: Problem, costs: DeviceCosts) -> Ways:
    pinned = problem.pins.tensor_parallel
    rows: list[tuple[int, OperatorCosts, Alternative | None]] = []
    for position, operator in enumerate(costs.operators):
        rows.append((position, operator, None))
        rows += [(position, operator, a) for a in operator.alternatives if pinned in (None, a.tensor_parallel)]
    graph = problem.profile.graph
    own = [sum(graph.parameter_bytes[name] for name in set(operator.parameters)) for operator in graph.operators]
    timed = [operator if alternative is None else alternative for _, operator, alternative in rows]
    return Ways(
        sizes=costs.micro_batches,
        operator=np.array([position for position, _, _ in rows], dtype=np.int64),
        devices=np.array([pinned or (a.tensor_parallel if a else 1) for _, _, a in rows], dtype=np.int64),
        parameter_bytes=np.array([a.parameter_bytes if a else own[p] for p, _, a in rows], dtype=np.int64),
        plain=np.array([a is None for _, _, a in rows]),
        fixed_bytes=np.array([a.fixed_bytes if a else 0 for _, _, a in rows], dtype=np.int64),
        saved_bytes=np.array([t.saved_bytes_per_sample for t in timed], dtype=np.float64),
        workspace_bytes=np.array([operator.workspace_bytes for _, operator, _ in rows], dtype=np.int64),
        forward_s=np.array([t.forward_s for t in timed], dtype=np.float64),
        backward_s=np.array([t.backward_s for t in timed], dtype=np.float64),
    )
