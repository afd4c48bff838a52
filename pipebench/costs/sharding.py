"""Costs of an operator whose dims are split over devices, and of changing the split of a tensor.

A split gives the number of parts of some dims of an operator, `batch` among them; the others stay whole. The
product of the parts is the number of devices. Dims that do not divide evenly cost the largest part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from pipebench.costs.quantise import whole_bytes
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph

Split = Mapping[str, int]
Sizes = list[Fraction]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A ring all-reduce of `bytes` on each of `devices`."""

    bytes: int
    devices: int


@dataclass(frozen=True, slots=True)
class Reductions:
    """What an operator reduces: its outputs in the forward, its inputs' gradients in the backward."""

    forward: tuple[Reduction, ...]
    backward: tuple[Reduction, ...]


def share_of(operator: Operator, split: Split) -> Fraction:
    """The largest part of the iteration space of one sample, as a share of the whole.

    Raises InvalidValue for an unknown dim and for a dim that is cut finer than its size.
    """
    sizes, tiles = _tiles(operator, {dim: parts for dim, parts in split.items() if dim != "batch"}, 1)
    return Fraction(prod(tiles.values()), prod(sizes.values()))


def held_share(operator: Operator, name: str, split: Split, samples: int) -> Fraction:
    """The largest tile of a tensor or parameter that one device has, as a share of the whole."""
    sizes, tiles = _tiles(operator, split, samples)
    spanned = _axes(operator, name)
    return Fraction(prod(tiles[dim] for dim in spanned), prod(sizes[dim] for dim in spanned))


def sharers(operator: Operator, name: str, split: Split) -> int:
    """Devices that hold the same tile of a tensor or parameter: the parts of the dims that it does not span."""
    spanned = _axes(operator, name)
    return prod(parts for dim, parts in split.items() if dim not in spanned)


def reductions(graph: OperatorGraph, name: str, split: Split, samples: int) -> Reductions:
    """What a split asks for: the forward reduces each output over the parts of the dims that its axes do not span,
    the backward each input's gradient likewise (PaSE, section II: layer cost; a contraction split in k sums its
    partial products).

    Raises InvalidValue for a dim as `share_of` does, and for a tensor without axes.
    """
    operator = graph.operators[graph.index[name]]

    def reduced(tensor: str, whole: int) -> Reduction:
        local = _rounded_up(whole * held_share(operator, tensor, split, samples))
        return Reduction(local, sharers(operator, tensor, split))

    outputs = [graph.tensors[tensor] for tensor in graph.outputs[graph.index[name]]]
    inputs = [graph.tensors[graph.tensor_index[tensor]] for tensor in operator.inputs]
    forward = [reduced(t.name, whole_bytes(t.forward_bytes_per_sample * samples) + t.fixed_bytes) for t in outputs]
    backward = [
        reduced(t.name, whole_bytes(t.gradient_bytes_per_sample * samples))
        for t in inputs
        if t.gradient_bytes_per_sample
    ]
    needed = (tuple(each for each in both if each.devices > 1 and each.bytes) for both in (forward, backward))
    return Reductions(*needed)


def reshard(
    graph: OperatorGraph, tensor: str, made: Split, reader: str, read: Split, samples: int, backward: bool = False
) -> int:
    """Bytes that one device must fetch of a tensor: what it needs minus what it already holds.

    The producer has split `made`, the operator `reader` split `read`; axes correspond by position. Tiles
    start at the same corner on every device, so it holds the smaller of both along each axis, and nothing when
    more devices need the tensor than held it (PaSE, section II: transfer cost, for one direction). Where one side
    names more axes than the other (a view), those behind the first count as one row of elements: tiles that cut
    no more than the first of them are runs that start together, of others nothing is held.
    backward: the gradient, which goes from reader to producer.

    Raises InvalidValue as `reductions` does.
    """
    described = graph.tensors[graph.tensor_index[tensor]]
    if described.producer is None:
        return 0
    producer = graph.operators[graph.index[described.producer]]
    consumer = graph.operators[graph.index[reader]]
    axes, other = _axes(producer, tensor), _axes(consumer, tensor)
    sizes, tiles = _tiles(producer, made, samples)
    whole = [Fraction(sizes[dim]) for dim in axes]
    held = [Fraction(tiles[dim]) for dim in axes]
    if len(axes) == len(other):
        parts = [read.get(dim, 1) for dim in other]
        needed = [Fraction(-(-size // cut)) for size, cut in zip(whole, parts, strict=True)]
    else:
        its_sizes, its_tiles = _tiles(consumer, read, samples)
        whole, held, needed = _as_rows(
            whole, held, [Fraction(its_sizes[dim]) for dim in other], [Fraction(its_tiles[dim]) for dim in other]
        )
    holders, needers = prod(made.values()), prod(read.values())
    each = described.gradient_bytes_per_sample if backward else described.forward_bytes_per_sample
    if backward:
        held, needed, holders, needers = needed, held, needers, holders
    overlap = prod(map(min, held, needed)) if needers <= holders else Fraction(0)
    all_bytes = whole_bytes(each * samples) + (0 if backward else described.fixed_bytes)
    return _rounded_up(all_bytes * Fraction(prod(needed) - overlap) / prod(whole))


def _as_rows(whole: Sizes, held: Sizes, its_whole: Sizes, its_needed: Sizes) -> tuple[Sizes, Sizes, Sizes]:
    """Sizes and tiles of both sides along the first axis and along all others as one of length 1.

    Tiles that are no run of elements overlap in nothing: the held one is then as good as empty.
    """
    rest = [
        Fraction(prod(tiles[1:])) / prod(sizes[1:]) for sizes, tiles in ((whole, held), (its_whole, its_needed))
    ]
    straight = all(
        tiles[2:] == sizes[2:] or tiles[1:] == sizes[1:]
        for sizes, tiles in ((whole, held), (its_whole, its_needed))
    )
    first = whole[0] if whole else Fraction(1)
    mine = held[0] if held else Fraction(1)
    needed = first * its_needed[0] / its_whole[0] if its_needed else first
    if not straight and rest[0] != 1 and rest[1] != 1:
        mine = Fraction(0)
    return [first, Fraction(1)], [mine, rest[0]], [needed, rest[1]]


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
    """What the axes of a tensor span. Of an operator that says nothing: samples, and of parameters nothing."""
    if not operator.axes:
        return () if tensor in operator.parameters else ("batch",)
    if tensor not in operator.axes:
        raise InvalidValue(f"operator {operator.name!r} does not say which dims the axes of {tensor!r} span")
    return operator.axes[tensor]


def _rounded_up(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)
