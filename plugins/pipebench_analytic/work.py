"""The kernels of an operator: forward, input gradient, weight gradient."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from pipebench.costs.shapes.flops import attention_core_flops, attention_projection_flops, forward_flops
from pipebench.domain.calibration import Direction
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_analytic.kinds import MemoryPasses, attention_internal_elements, kind_of
from pipebench_analytic.roofline import Kernel

ROW_DIMS = ("sequence", "height", "width")
"""Dims that, with the samples, make the rows of a contraction's matrix."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """input_gradient: also the whole backward of kinds that have one kernel for it."""

    forward: Kernel | None
    input_gradient: Kernel | None
    weight_gradient: Kernel | None = None


@dataclass(frozen=True)
class OperatorWork:
    """One operator's bytes for one sample, and the kernels that follow from them."""

    operator: Operator
    input_bytes: float
    output_bytes: float
    weight_bytes: int
    element_bytes: int
    input_has_gradient: bool

    @cached_property
    def rows(self) -> float:
        """Rows of a contraction for one sample: pixels, tokens, or one."""
        return float(prod(self.operator.dims.get(dim, 1) for dim in ROW_DIMS))

    def kernels(self, ways: int = 1, *, split_inputs: bool = False, split_outputs: bool = False) -> Kernels:
        """Kernels on each of `ways` devices that share a contraction; inputs or outputs may be split over them."""
        made = self._kernels(ways, split_inputs, split_outputs)
        return Kernels(
            self._with_kind(made.forward, "forward"),
            self._with_kind(made.input_gradient, "backward"),
            self._with_kind(made.weight_gradient, "backward"),
        )

    def _with_kind(self, kernel: Kernel | None, direction: Direction) -> Kernel | None:
        return kernel and replace(kernel, kind=self.operator.kind, direction=direction)

    def _kernels(self, ways: int, split_inputs: bool, split_outputs: bool) -> Kernels:
        kind = kind_of(self.operator)
        flops = float(forward_flops(self.operator))
        read = self.input_bytes / (ways if split_inputs else 1)
        written = self.output_bytes / (ways if split_outputs else 1)
        weights = self.weight_bytes / ways
        if not kind.contraction:
            share = replace(
                self, input_bytes=read, output_bytes=written, weight_bytes=-(-self.weight_bytes // ways)
            )
            return Kernels(*(share._passing(passes, flops / ways) for passes in (kind.forward, kind.backward)))
        plain = read + written
        if self.operator.kind == "attention":
            return self._attention(ways, plain, weights)
        each = Kernel(flops / ways, plain, weights, self.rows)
        if self.operator.kind == "matmul":  # the gradients of two activations, no weights
            return Kernels(each, Kernel(2 * flops / ways, 2 * plain, 0.0, self.rows))
        return Kernels(each, each if self.input_has_gradient else None, each)

    def _passing(self, passes: MemoryPasses | None, flops: float) -> Kernel | None:
        if passes is None:
            return None
        weights = self.weight_bytes if kind_of(self.operator).reads_weights else 0
        return Kernel(flops, passes.inputs * self.input_bytes + passes.outputs * self.output_bytes, weights)

    def _attention(self, ways: int, plain: float, weights: float) -> Kernels:
        """Each part of the attention writes what the next reads; only the projections have weight gradients."""
        states, scores = attention_internal_elements(self.operator)
        internal = self.element_bytes * (2 * states + 4 * scores) / ways
        projections = attention_projection_flops(self.operator) / ways
        core = attention_core_flops(self.operator) / ways
        state_bytes = self.element_bytes * states / ways
        return Kernels(
            forward=Kernel(projections + core, plain + internal, weights, self.rows),
            input_gradient=Kernel(projections + 2 * core, plain + 2 * internal, weights, self.rows),
            weight_gradient=Kernel(projections, plain + state_bytes, weights, self.rows),
        )


def graph_work(graph: OperatorGraph, element_bytes: int) -> tuple[OperatorWork, ...]:
    """The work of every operator, in the order of the graph."""
    return tuple(_work(graph, position, element_bytes) for position in range(len(graph.operators)))


def _work(graph: OperatorGraph, position: int, element_bytes: int) -> OperatorWork:
    operator = graph.operators[position]
    inputs = [graph.tensors[graph.tensor_index[name]] for name in operator.inputs]
    outputs = [graph.tensors[tensor] for tensor in graph.outputs[position]]
    return OperatorWork(
        operator=operator,
        input_bytes=sum(tensor.forward_bytes_per_sample for tensor in inputs),
        output_bytes=sum(tensor.forward_bytes_per_sample for tensor in outputs),
        weight_bytes=sum(graph.parameter_bytes[name] for name in operator.parameters),
        element_bytes=element_bytes,
        input_has_gradient=any(tensor.gradient_bytes_per_sample > 0 for tensor in inputs),
    )
