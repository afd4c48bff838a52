"""What runs between the products of a Transformer layer: norms, rotations, activations, residuals.

Each moves bytes through memory. Written by hand or made by a compiler it is one kernel. Eager PyTorch launches one
for each operation, norms and rotations in fp32, and one for each sum of gradients where a tensor has several
readers. The operations are those of torchtitan's Llama (github pytorch/torchtitan: models/llama/model.py,
models/norms.py) and their derivatives as PyTorch launches them; a trace of an H100 shows the same kernels.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from pipebench.costs.transformer import WIDE_BYTES
from pipebench.domain.framework import Elementwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Those of one layer on one device at a number of samples, in elements.

    hidden: between the products. queries, keys: of all heads. inner: one of the feed-forward part. branches: 2
    where that is gated. mask: of a dropout, as a share of the bytes of an activation; 0 where there is none.
    repeats_keys: whether keys and values are written once for each head of queries.
    """

    hidden: float
    queries: float
    keys: float
    inner: float
    branches: int
    mask: float
    repeats_keys: bool


class ElementwiseKernels(ABC):
    """Seconds of kernels, part by part. A layer has two norms and two residuals.

    stream_s: seconds of a kernel that moves so many bytes. size: bytes of an element.
    """

    def __init__(self, layer: Activations, size: int, stream_s: Callable[[float], float]) -> None:
        self._layer, self._size, self._stream_s = layer, size, stream_s

    @abstractmethod
    def norms(self) -> list[float]:
        """Both norms."""

    @abstractmethod
    def rotations(self) -> list[float]:
        """Queries and keys are rotated and laid out for fused attention."""

    @abstractmethod
    def activation(self) -> list[float]:
        """Of the feed-forward part."""

    def residuals(self) -> list[float]:
        """Both residuals, with their dropouts."""
        return [self._moved(3 + self._layer.mask, self._layer.hidden)] * 2

    @abstractmethod
    def rotations_backward(self) -> list[float]:
        """The backward of `rotations`."""

    @abstractmethod
    def backward(self) -> list[float]:
        """The backward of norms, residuals and activation."""

    @abstractmethod
    def sums(self) -> list[float]:
        """Gradients of a tensor with several readers are added."""

    def _moved(self, passes: float, elements: float) -> float:
        """A kernel that reads and writes so many elements so often."""
        return self._stream_s(passes * (self._size * elements))

    def _repeats(self) -> list[float]:
        """Keys and values are read once and written for each head of queries, or the other way round."""
        layer = self._layer
        return [self._moved(1, layer.queries + layer.keys)] * 2 if layer.repeats_keys else []


class FusedKernels(ElementwiseKernels):
    """One kernel each, written so or made by a compiler."""

    def norms(self) -> list[float]:
        return [self._moved(2, self._layer.hidden)] * 2

    def rotations(self) -> list[float]:
        return [self._moved(2, self._layer.queries), *self._repeats()]

    def activation(self) -> list[float]:
        return [self._moved(self._layer.branches + 1, self._layer.inner)]

    def rotations_backward(self) -> list[float]:
        return [self._moved(3, self._layer.queries), *self._repeats()]

    def backward(self) -> list[float]:
        layer = self._layer
        return [
            *[self._moved(3, layer.hidden)] * 2,
            *[self._moved(2 + layer.mask, layer.hidden)] * 2,
            self._moved(2 * layer.branches + 1, layer.inner),
        ]

    def sums(self) -> list[float]:
        return [self._moved(2, self._layer.hidden)] * 2


class EagerKernels(ElementwiseKernels):
    """One kernel for each operation of PyTorch; norms and rotations compute in fp32.

    A kernel whose tensors are small takes no time of the device, but the host launches it.
    """

    def norms(self) -> list[float]:
        size, wide, hidden = self._size, WIDE_BYTES, self._layer.hidden
        # To fp32, square, mean, epsilon, root, scale, from fp32, weight.
        each = (size + wide, 2 * wide, wide, 0, 0, 2 * wide, wide + size, 2 * size)
        return [self._stream_s(moved * hidden) for moved in each] * 2

    def rotations(self) -> list[float]:
        return [*self._rotated(self._layer.queries), *self._rotated(self._layer.keys), *self._repeats()]

    def activation(self) -> list[float]:
        inner = self._layer.inner
        return [self._moved(2, inner), *[self._moved(3, inner)] * (self._layer.branches - 1)]

    def rotations_backward(self) -> list[float]:
        conjugates = [0.0, 0.0]
        rotated = [*self._rotated(self._layer.keys), *self._rotated(self._layer.queries)]
        return [*self._repeats(), *conjugates, *rotated]

    def backward(self) -> list[float]:
        size, wide, hidden = self._size, WIDE_BYTES, self._layer.hidden
        # Weight, its gradient in two kernels and a sum, to fp32, the scale's two factors, the sum of its gradient,
        # root and mean, their gradient spread out and laid out, the square's derivative in two, a sum, from fp32.
        each = (
            *(2 * size, 3 * size, size, 0),
            *(size + wide, 3 * wide, 2 * wide, wide),
            *(0, 0, 0),
            *(wide, 2 * wide, 2 * wide, 3 * wide, 3 * wide, wide + size),
        )
        norms = [self._stream_s(moved * hidden) for moved in each] * 2
        gated = 2 * (self._layer.branches - 1) + 1
        return [*norms, *[self._moved(3, self._layer.inner)] * gated]

    def sums(self) -> list[float]:
        """Of both residuals, of query, key and value, and of the branches."""
        return [self._moved(3, self._layer.hidden)] * (2 + 2 + self._layer.branches - 1)

    def _rotated(self, elements: float) -> list[float]:
        """To fp32, the product of complex numbers, from fp32."""
        size, wide = self._size, WIDE_BYTES
        return [self._stream_s(moved * elements) for moved in (size + wide, 2 * wide, wide + size)]


ELEMENTWISE: dict[Elementwise, type[ElementwiseKernels]] = {"fused": FusedKernels, "eager": EagerKernels}
