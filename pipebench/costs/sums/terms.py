"""What each operator, parameter and tensor adds to the sums of a stage, as arrays."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of plain operators at one number of samples on one replica, on devices of one type.

    forward_ns, backward_ns, weight_gradient_ns: of each operator, shape (operators,).
    saved_bytes, workspace_bytes: of each operator, shape (operators,).
    parameter_bytes: of each parameter in the order of the graph, shape (parameters,).
    tensor_bytes, gradient_bytes: one message of each tensor, and of its gradient, shape (tensors,).
    """

    forward_ns: IntArray
    backward_ns: IntArray
    weight_gradient_ns: IntArray
    saved_bytes: IntArray
    workspace_bytes: IntArray
    parameter_bytes: IntArray
    tensor_bytes: IntArray
    gradient_bytes: IntArray

    @property
    def exchanged_bytes(self) -> IntArray:
        """One message of each tensor and one of its gradient, shape (tensors,)."""
        return self.tensor_bytes + self.gradient_bytes


class PlainTerms:
    """The terms of a graph on devices of one type, cached by the number of samples on each replica."""

    def __init__(self, graph: OperatorGraph, times: OperatorTimes) -> None:
        self._times = times
        costs = times.costs.operators
        self._saved_bytes = np.array([c.saved_bytes_per_sample for c in costs], np.float64)
        self._workspace_bytes = np.array([c.workspace_bytes for c in costs], np.int64)
        self._parameter_bytes = np.array([parameter.bytes for parameter in graph.parameters], np.int64)
        self._forward_bytes = np.array([t.forward_bytes_per_sample for t in graph.tensors], np.float64)
        self._gradient_bytes = np.array([t.gradient_bytes_per_sample for t in graph.tensors], np.float64)
        self._fixed_bytes = np.array([t.fixed_bytes for t in graph.tensors], np.int64)
        self._known: dict[int, Terms] = {}

    def at(self, samples: int) -> Terms:
        """The terms at `samples` samples on each replica."""
        if samples not in self._known:
            self._known[samples] = self._at(samples)
        return self._known[samples]

    def _at(self, samples: int) -> Terms:
        forward_ns, backward_ns = self._times.at(samples)
        return Terms(
            forward_ns=forward_ns,
            backward_ns=backward_ns,
            weight_gradient_ns=self._times.weight_gradient_at(samples),
            saved_bytes=whole_bytes(self._saved_bytes * samples),
            workspace_bytes=self._workspace_bytes,
            parameter_bytes=self._parameter_bytes,
            tensor_bytes=whole_bytes(self._forward_bytes * samples) + self._fixed_bytes,
            gradient_bytes=whole_bytes(self._gradient_bytes * samples),
        )
