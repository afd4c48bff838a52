"""Transfer costs of PaSE: what one device needs of a tensor and does not hold, forward and backward."""

from math import prod

import numpy as np

from pipebench.domain.graph import Operator
from pipebench_pase.machine import Machine
from pipebench_pase.space import FloatArray, Space

BOTH_WAYS = 2.0


def transfer_costs(
    tensor: str, source: Operator, made: Space, target: Operator, read: Space, machine: Machine
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


def _tiles(tensor: str, operator: Operator, space: Space) -> list[FloatArray]:
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
