"""PaSE's own cost: arithmetic of one device, communication inside an operator, transfers between."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from pipebench.costs.shapes.flops import FLOPS, forward_flops
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_pase.space import ConfigurationSpace, FloatArray


@dataclass(frozen=True, slots=True)
class CostMachine:
    """The device of PaSE's cost.

    flops: multiply-adds a second.
    word_flops: multiply-adds that moving one word is worth (r of PaSE, equation 1).
    """

    flops: float
    word_flops: float

    def words(self, words: FloatArray) -> FloatArray:
        """Cost of moving so many words."""
        return self.word_flops * words

    def all_reduce(self, words: FloatArray, devices: FloatArray) -> FloatArray:
        """Cost of a ring all-reduce of `words` on each of `devices`; 0 on one."""
        return self.word_flops * (words / devices) * (2.0 * (devices - 1.0))


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of dims in the GEMM of a product (PaSE, section II).

    rows, columns: m and n, which span the result.
    summed: k, which is not in the result.
    shared: in both operands and the result: one product for each of their values.
    """

    shared: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]


def roles(graph: OperatorGraph, operator: Operator) -> Roles:
    """The first input is one operand; the second input, or all parameters, the other."""
    first = set(operator.axes[operator.inputs[0]])
    others = operator.inputs[1:] or operator.parameters
    second = {dim for name in others for dim in operator.axes[name]}
    made = graph.tensors[graph.outputs[graph.index[operator.name]][0]].name
    result = set(operator.axes[made])
    dims = ("batch", *operator.dims)
    return Roles(
        shared=tuple(d for d in dims if d in first and d in second and d in result),
        rows=tuple(d for d in dims if d in result and d not in second),
        columns=tuple(d for d in dims if d in result and d not in first),
        summed=tuple(d for d in dims if d not in result),
    )


EXPONENT = 3.0
"""Multiply-adds of one exponential."""
NORMALISED = 16.0
"""Multiply-adds of normalising one element, forward and backward."""
WINDOW = ("kernel_height", "kernel_width")


@dataclass(frozen=True)
class LayerWork:
    """One operator with its configurations.

    seconds: of its forward and backward, where only a profile tells.
    """

    graph: OperatorGraph
    operator: Operator
    space: ConfigurationSpace
    seconds: float = 0.0

    @property
    def result_tensor(self) -> str:
        """The name of the operator's result; of several the first."""
        return self.graph.tensors[self.graph.outputs[self.graph.index[self.operator.name]][0]].name

    @property
    def pointwise(self) -> int:
        """Functions applied to each element of the result."""
        return self.operator.attributes.get("pointwise", 0)

    def local(self) -> FloatArray:
        """Points of the iteration space on each device."""
        return self.space.local(self.space.sizes)


def gemm(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Products: one GEMM forward, two backward, and a reduction of the result of each over what it sums."""
    kinds = roles(layer.graph, layer.operator)
    space = layer.space
    m, n, k = (space.local(dims) for dims in (kinds.rows, kinds.columns, kinds.summed))
    cut_m, cut_n, cut_k = (space.parts(dims) for dims in (kinds.rows, kinds.columns, kinds.summed))
    return space.local(kinds.shared) * gemm_cost(machine, (m, n, k), (cut_m, cut_n, cut_k), layer.pointwise)


def gemm_cost(
    machine: CostMachine,
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


def lstm(layer: LayerWork, machine: CostMachine) -> FloatArray:
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


def pool(layer: LayerWork, machine: CostMachine) -> FloatArray:
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


def _image(layer: LayerWork) -> tuple[int, int]:
    """Height and width of what a pooling reads."""
    graph = layer.graph
    (read,) = layer.operator.inputs
    producer = graph.producers[graph.tensor_index[read]]
    source = graph.operators[producer] if producer >= 0 else layer.operator
    return source.dims.get("height", layer.operator.dims["height"]), source.dims.get(
        "width", layer.operator.dims["width"]
    )


def elementwise(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """One operation for each point."""
    del machine
    return (1.0 + layer.pointwise) * layer.local()


def free(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Moves nothing by itself: what changes place is a transfer."""
    del machine
    return np.zeros(len(layer.space.configurations))


def _normalised_over(axis: str, layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Mean and deviation over `axis`, forward and backward; scale and shift have its length in the prototype."""
    space = layer.space
    local, along = layer.local(), space.local((axis,))
    others = space.parts(dim for dim in space.sizes if dim != axis)
    sums = machine.all_reduce(local / along, space.parts((axis,)))
    return NORMALISED * local + 4.0 * sums + 4.0 * machine.all_reduce(along, others)


def batch_norm(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Over the samples."""
    return _normalised_over("batch", layer, machine)


def layer_norm(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Over the last axis."""
    return _normalised_over(layer.operator.axes[layer.result_tensor][-1], layer, machine)


def softmax(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Exponentials and their sums; backward a product with every other element of the row."""
    space = layer.space
    axis = layer.operator.axes[layer.result_tensor][-1]
    local, cut, length = layer.local(), space.parts((axis,)), space.sizes[axis]
    rows = space.local(dim for dim in space.sizes if dim != axis)
    sums = 2.0 * machine.all_reduce(rows, cut) + machine.all_reduce(rows * length, cut)
    return (EXPONENT + 1.0 + length) * local + sums


def cross_entropy(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """Softmax, and where the classes are cut one sum and one label for each row."""
    space = layer.space
    axis = layer.operator.axes[layer.result_tensor][-1]
    rows = space.local(dim for dim in space.sizes if dim != axis)
    exchanged = np.where(space.parts((axis,)) > 1, machine.words(2.0 * rows), 0.0)
    return (EXPONENT + 1.0) * layer.local() + 2.0 * rows + exchanged


def other(layer: LayerWork, machine: CostMachine) -> FloatArray:
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

Rule = Callable[[LayerWork, CostMachine], FloatArray]
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


def layer_costs(layer: LayerWork, machine: CostMachine) -> FloatArray:
    """The layer cost of every configuration, t_l of PaSE, equation 1."""
    rule, named = RULES.get(layer.operator.kind, (other, frozenset[str]()))
    if not layer.operator.dims or not layer.operator.axes or not named <= layer.operator.dims.keys():
        rule = other
    return rule(layer, machine)


BOTH_WAYS = 2.0


def transfer_costs(
    tensor: str,
    source: Operator,
    made: ConfigurationSpace,
    target: Operator,
    read: ConfigurationSpace,
    machine: CostMachine,
) -> FloatArray:
    """t_x of PaSE, equation 1, for each pair of configurations: shape (of the source, of the target).

    Axes correspond by position. A device holds the smaller of both tiles along each axis, and nothing where the
    target cuts the tensor into more tiles than the source. Where numbers of axes differ, those behind the samples
    are taken as one.
    """
    held, needed = _tiles(tensor, source, made), _tiles(tensor, target, read)
    shape = [float(made.sizes[dim]) for dim in _axes(source, tensor)]
    if len(held) != len(needed):
        return machine.words(BOTH_WAYS * _flat(shape, held, needed))
    need = prod(size / parts for size, parts in zip(shape, needed, strict=True))
    overlap = np.ones((len(made.configurations), len(read.configurations)))
    for size, ours, theirs in zip(shape, held, needed, strict=True):
        overlap *= np.minimum.outer(size / ours, size / theirs)
    overlap[_product(held)[:, None] < _product(needed)[None, :]] = 0.0
    return machine.words(BOTH_WAYS * np.maximum(need - overlap, 0.0))


def _axes(operator: Operator, tensor: str) -> tuple[str, ...]:
    return operator.axes.get(tensor, ("batch",)) if operator.dims else ("batch",)


def _tiles(tensor: str, operator: Operator, space: ConfigurationSpace) -> list[FloatArray]:
    """Parts of each axis of the tensor, by configuration."""
    return [space.parts((dim,)) for dim in _axes(operator, tensor)]


def _flat(shape: list[float], held: list[FloatArray], needed: list[FloatArray]) -> FloatArray:
    """Words missing, the axes behind the samples taken as one row of elements.

    A side that cuts no more than the first of its axes there has a contiguous piece; pieces overlap from their
    start. Of others nothing is counted as held.
    """
    rest = prod(shape[1:])
    ours, theirs = (_product(parts[1:]) for parts in (held, needed))
    samples = np.minimum.outer(shape[0] / held[0], shape[0] / needed[0])
    piece = np.minimum.outer(np.broadcast_to(rest / ours, held[0].shape), rest / theirs * np.ones_like(needed[0]))
    straight = np.logical_and.outer(_contiguous(held), _contiguous(needed))
    straight |= (ours * np.ones_like(held[0]) == 1.0)[:, None] | (theirs * np.ones_like(needed[0]) == 1.0)
    enough = _product(held)[:, None] >= _product(needed)[None, :]
    overlap = np.where(straight & enough, samples * piece, 0.0)
    need = shape[0] / needed[0] * (rest / theirs)
    return np.maximum(need[None, :] - overlap, 0.0)


def _product(parts: list[FloatArray]) -> FloatArray:
    return np.asarray(np.prod(parts, axis=0)) if parts else np.ones(1)


def _contiguous(parts: list[FloatArray]) -> FloatArray:
    """Whether only the first axis behind the samples is cut."""
    whole = np.ones_like(parts[0], dtype=bool)
    for axis in parts[2:]:
        whole &= axis == 1.0
    return whole
