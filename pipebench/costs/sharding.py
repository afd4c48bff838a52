"""Costs of an operator whose dims are split over devices, and of changing the split of a tensor.

A split gives the number of parts of some dims of an operator, `batch` among them; the others stay whole. The
product of the parts is the number of devices. Dims that do not divide evenly cost the largest part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from pipebench.costs.communicate import all_reduce_ns
from pipebench.costs.quantise import whole_bytes
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph

Split = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ShardedTimes:
    """Nanoseconds on each device: of one micro-batch, reductions included, and, once a mini-batch, of reducing
    the weight gradients over the devices that hold the same weights.
    """

    forward: int
    backward: int
    weights: int


def shard(
    graph: OperatorGraph, name: str, split: Split, samples: int, whole_ns: tuple[int, int], level: LinkLevel
) -> ShardedTimes:
    """Times of an operator under a split of its dims, from its forward and backward times without one.

    Time x largest local part / whole iteration volume, half-even to ns, plus ring all-reduces on `level`: the
    forward reduces each output over the parts of the dims that its axes do not span, the backward each input's
    gradient likewise (PaSE, section II: layer cost; a contraction split in k sums its partial products).

    Raises InvalidValue for an unknown dim, a dim cut finer than its size, or a tensor without axes.
    """
    operator = graph.operators[graph.index[name]]
    sizes, tiles = _tiles(operator, split, samples)
    share = Fraction(prod(tiles.values()), prod(sizes.values()))

    def reduced(tensor: str, whole_bytes_of_tensor: int) -> int:
        spanned = _axes(operator, tensor)
        local = whole_bytes_of_tensor * Fraction(
            prod(tiles[dim] for dim in spanned), prod(sizes[dim] for dim in spanned)
        )
        over = prod(parts for dim, parts in split.items() if dim not in spanned)
        return all_reduce_ns(level, _rounded_up(local), over)

    outputs = [graph.tensors[tensor] for tensor in graph.outputs[graph.index[name]]]
    inputs = [graph.tensors[graph.tensor_index[tensor]] for tensor in operator.inputs]
    forward, backward = (round(ns * share) for ns in whole_ns)
    for made in outputs:
        forward += reduced(made.name, whole_bytes(made.forward_bytes_per_sample * samples) + made.fixed_bytes)
    for read in inputs:
        gradient = whole_bytes(read.gradient_bytes_per_sample * samples)
        backward += reduced(read.name, gradient) if gradient else 0
    weights = sum(reduced(parameter, graph.parameter_bytes[parameter]) for parameter in operator.parameters)
    return ShardedTimes(forward, backward, weights)


def reshard(
    graph: OperatorGraph, tensor: str, made: Split, reader: str, read: Split, samples: int, backward: bool = False
) -> int:
    """Bytes that one device must fetch of a tensor: what it needs minus what it already holds.

    The producer has split `made`, the operator `reader` split `read`; axes correspond by position. Tiles
    start at the same corner on every device, so it holds the smaller of both along each axis, and nothing when
    more devices need the tensor than held it (PaSE, section II: transfer cost, for one direction).
    backward: the gradient, which goes from reader to producer.

    Raises InvalidValue as `shard` does, and when producer and reader name different numbers of axes.
    """
    described = graph.tensors[graph.tensor_index[tensor]]
    if described.producer is None:
        return 0
    producer = graph.operators[graph.index[described.producer]]
    axes = _axes(producer, tensor)
    sizes, tiles = _tiles(producer, made, samples)
    other = _axes(graph.operators[graph.index[reader]], tensor)
    if len(axes) != len(other):
        raise InvalidValue(f"tensor {tensor!r} has {len(axes)} axes at its producer, {len(other)} at {reader!r}")
    held = [tiles[dim] for dim in axes]
    needed = [-(-sizes[dim] // read.get(its, 1)) for dim, its in zip(axes, other, strict=True)]
    holders, needers = prod(made.values()), prod(read.values())
    each = described.gradient_bytes_per_sample if backward else described.forward_bytes_per_sample
    if backward:
        held, needed, holders, needers = needed, held, needers, holders
    overlap = prod(map(min, held, needed)) if needers <= holders else 0
    whole = whole_bytes(each * samples) + (0 if backward else described.fixed_bytes)
    return _rounded_up(whole * Fraction(prod(needed) - overlap, prod(sizes[dim] for dim in axes)))


def _tiles(operator: Operator, split: Split, samples: int) -> tuple[dict[str, int], dict[str, int]]:
    """The size of each dim, `batch` included, and of its largest part."""
    sizes = {"batch": samples} | operator.dims
    for dim, parts in split.items():
        if dim not in sizes:
            raise InvalidValue(f"operator {operator.name!r} has no dim {dim!r} to split")
        if not 1 <= parts <= sizes[dim]:
            raise InvalidValue(
                f"operator {operator.name!r}: dim {dim!r} of size {sizes[dim]} is split into {parts}"
            )
    return sizes, {dim: -(-size // split.get(dim, 1)) for dim, size in sizes.items()}


def _axes(operator: Operator, tensor: str) -> tuple[str, ...]:
    if tensor not in operator.axes:
        raise InvalidValue(f"operator {operator.name!r} does not say which dims the axes of {tensor!r} span")
    return operator.axes[tensor]


def _rounded_up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
