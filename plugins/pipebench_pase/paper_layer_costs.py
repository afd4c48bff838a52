"""Layer costs of PaSE: arithmetic of one device and the communication inside an operator, forward and backward.

The formulas are those of the paper's released prototype; the paper gives none. All return one cost for each
configuration, in multiply-adds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipebench.costs.flops import FLOPS, forward_flops
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_pase.machine import Machine
from pipebench_pase.roles import roles
from pipebench_pase.space import FloatArray, Space

EXPONENT = 3.0
"""Multiply-adds of one exponential."""
NORMALISED = 16.0
"""Multiply-adds of normalising one element, forward and backward."""
WINDOW = ("kernel_height", "kernel_width")


@dataclass(frozen=True)
class Layer:
    """One operator with its configurations. seconds: of its forward and backward, where only a profile tells."""

    graph: OperatorGraph
    operator: Operator
    space: Space
    seconds: float = 0.0

    @property
    def made(self) -> str:
        """The tensor that it makes, the first of several."""
        return self.graph.tensors[self.graph.outputs[self.graph.index[self.operator.name]][0]].name

    @property
    def pointwise(self) -> int:
        """Functions applied to each element of the result."""
        return self.operator.attributes.get("pointwise", 0)

    def local(self) -> FloatArray:
        """Points of the iteration space on each device."""
        return self.space.local(self.space.sizes)


def gemm(layer: Layer, machine: Machine) -> FloatArray:
    """Products: one GEMM forward, two backward, and a reduction of the result of each over what it sums."""
    kinds = roles(layer.graph, layer.operator)
    space = layer.space
    m, n, k = (space.local(dims) for dims in (kinds.rows, kinds.columns, kinds.summed))
    cut_m, cut_n, cut_k = (space.parts(dims) for dims in (kinds.rows, kinds.columns, kinds.summed))
    return space.local(kinds.shared) * gemm_cost(machine, (m, n, k), (cut_m, cut_n, cut_k), layer.pointwise)


def gemm_cost(
    machine: Machine,
    size: tuple[FloatArray, FloatArray, FloatArray],
    cuts: tuple[FloatArray, FloatArray, FloatArray],
    pointwise: int,
) -> FloatArray:
    """One GEMM of local size m, n, k whose dims are cut so often, with `pointwise` functions of its result."""
    (m, n, k), (cut_m, cut_n, cut_k) = size, cuts
    reductions = (
        machine.all_reduce(m * n, cut_k) + machine.all_reduce(m * k, cut_n) + machine.all_reduce(n * k, cut_m)
    )
    return 3.0 * m * n * k + 3.0 * pointwise * m * n + reductions


def lstm(layer: Layer, machine: Machine) -> FloatArray:
    """All steps of all layers as one GEMM a layer (4 gates wide, input and last output summed), and what a cell
    hands to the next step and the next layer when it is cut otherwise than they read it.
    """
    space = layer.space
    m, n, k = space.local(("sequence", "batch")), 4 * space.local(("units",)), 2 * space.local(("inputs",))
    cuts = (space.parts(("sequence", "batch")), space.parts(("units",)), space.parts(("inputs",)))
    cost = space.local(("layers",)) * gemm_cost(machine, (m, n, k), cuts, layer.pointwise)
    batch, units, inputs = (space.local((dim,)) for dim in ("batch", "units", "inputs"))
    makers, readers = space.parts(("batch", "units")), space.parts(("batch", "inputs"))
    held = np.where(readers > makers, 0.0, batch * np.minimum(units, inputs))
    steps = space.sizes["layers"] * space.sizes["sequence"]
    return cost + steps * machine.words(np.maximum(batch * inputs - held, 0.0))


def pool(layer: Layer, machine: Machine) -> FloatArray:
    """One operation for each result, and the rows and columns around a cut image that the windows reach."""
    space, operator = layer.space, layer.operator
    if "height" not in space.sizes:
        return machine.all_reduce(layer.local(), space.parts(WINDOW))
    outer = inner = space.local(("batch", "channels"))
    for image, window, size in zip(("height", "width"), WINDOW, _image(layer), strict=True):
        cut = space.parts((image,))
        local = size / cut
        inner = inner * local
        outer = outer * np.where(cut > 1, local + operator.dims[window], local)
    return space.local(("batch", "channels", "height", "width")) + machine.words(outer - inner)


def _image(layer: Layer) -> tuple[int, int]:
    """Height and width of what a pooling reads."""
    graph = layer.graph
    (read,) = layer.operator.inputs
    producer = graph.producers[graph.tensor_index[read]]
    source = graph.operators[producer] if producer >= 0 else layer.operator
    return source.dims.get("height", layer.operator.dims["height"]), source.dims.get(
        "width", layer.operator.dims["width"]
    )


def elementwise(layer: Layer, machine: Machine) -> FloatArray:
    """One operation for each point."""
    del machine
    return (1.0 + layer.pointwise) * layer.local()


def free(layer: Layer, machine: Machine) -> FloatArray:
    """Moves nothing by itself: what changes place is a transfer."""
    del machine
    return np.zeros(len(layer.space.configurations))


def _normalised_over(axis: str, layer: Layer, machine: Machine) -> FloatArray:
    """Mean and deviation over `axis`, forward and backward; scale and shift have its length in the prototype."""
    space = layer.space
    local, along = layer.local(), space.local((axis,))
    others = space.parts(dim for dim in space.sizes if dim != axis)
    sums = machine.all_reduce(local / along, space.parts((axis,)))
    return NORMALISED * local + 4.0 * sums + 4.0 * machine.all_reduce(along, others)


def batch_norm(layer: Layer, machine: Machine) -> FloatArray:
    """Over the samples."""
    return _normalised_over("batch", layer, machine)


def layer_norm(layer: Layer, machine: Machine) -> FloatArray:
    """Over the last axis."""
    return _normalised_over(layer.operator.axes[layer.made][-1], layer, machine)


def softmax(layer: Layer, machine: Machine) -> FloatArray:
    """Exponentials and their sums; backward a product with every other element of the row."""
    space = layer.space
    axis = layer.operator.axes[layer.made][-1]
    local, cut, length = layer.local(), space.parts((axis,)), space.sizes[axis]
    rows = space.local(dim for dim in space.sizes if dim != axis)
    sums = 2.0 * machine.all_reduce(rows, cut) + machine.all_reduce(rows * length, cut)
    return (EXPONENT + 1.0 + length) * local + sums


def cross_entropy(layer: Layer, machine: Machine) -> FloatArray:
    """Softmax, and where the classes are cut one sum and one label for each row."""
    space = layer.space
    axis = layer.operator.axes[layer.made][-1]
    rows = space.local(dim for dim in space.sizes if dim != axis)
    exchanged = np.where(space.parts((axis,)) > 1, machine.words(2.0 * rows), 0.0)
    return (EXPONENT + 1.0) * layer.local() + 2.0 * rows + exchanged


def other(layer: Layer, machine: Machine) -> FloatArray:
    """Any other operator: its arithmetic in equal shares, and a reduction of each operand over what it lacks.

    The arithmetic is three times the FLOP rule's forward, or the profile's time at the machine's rate.
    """
    space, operator, graph = layer.space, layer.operator, layer.graph
    if operator.kind in FLOPS and operator.dims:
        whole = 1.5 * forward_flops(operator) * space.sizes["batch"]
    else:
        whole = layer.seconds * machine.flops
    cost = whole / space.devices
    made = [graph.tensors[t].name for t in graph.outputs[graph.index[operator.name]]]
    learnt = [
        name for name in operator.inputs if graph.tensors[graph.tensor_index[name]].gradient_bytes_per_sample
    ]
    for name in (*made, *learnt, *operator.parameters):
        axes = operator.axes.get(name)
        if axes is not None:
            words = space.local(axes)
        elif name in graph.parameter_bytes:
            axes, words = (), np.full(len(space.devices), graph.parameter_bytes[name] / ELEMENT_BYTES)
        else:
            continue
        cost = cost + machine.all_reduce(words, space.parts(dim for dim in space.sizes if dim not in axes))
    return cost


ELEMENT_BYTES = 4
"""Of weights whose shape is not known: the graph counts them in fp32."""

Rule = Callable[[Layer, Machine], FloatArray]
RULES: dict[str, tuple[Rule, frozenset[str]]] = {
    "add": (elementwise, frozenset()),
    "average_pool": (pool, frozenset()),
    "batch_norm": (batch_norm, frozenset()),
    "concat": (free, frozenset()),
    "conv2d": (gemm, frozenset()),
    "cross_entropy": (cross_entropy, frozenset()),
    "dropout": (elementwise, frozenset()),
    "embedding": (gemm, frozenset()),
    "flatten": (free, frozenset()),
    "layer_norm": (layer_norm, frozenset()),
    "linear": (gemm, frozenset()),
    "lstm": (lstm, frozenset({"layers", "sequence", "units", "inputs"})),
    "matmul": (gemm, frozenset()),
    "max_pool": (pool, frozenset()),
    "positions": (elementwise, frozenset()),
    "relu": (elementwise, frozenset()),
    "softmax": (softmax, frozenset()),
    "stack": (free, frozenset()),
    "unstack": (free, frozenset()),
}
"""Kind to its rule and the dims that the rule names."""


def layer_costs(layer: Layer, machine: Machine) -> FloatArray:
    """The layer cost of every configuration, t_l of PaSE, equation 1."""
    rule, named = RULES.get(layer.operator.kind, (other, frozenset[str]()))
    if not layer.operator.dims or not layer.operator.axes or not named <= layer.operator.dims.keys():
        rule = other
    return rule(layer, machine)
