"""What runs between the products of a layer: norms, rotations, activations, residuals.

Each moves bytes through memory. Written by hand or made by a compiler it is one kernel. Eager PyTorch launches one
for each operation, RMS norms and rotations in fp32, and one for each sum of gradients where a tensor has several
readers. The operations are those of torchtitan's Llama of 2024 (github pytorch/torchtitan at 9dec370:
models/llama/model.py, models/norms.py) and their derivatives as PyTorch launches them; a trace of an H100 shows
the same kernels.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from pipebench.costs.shapes.transformer import WIDE_BYTES
from pipebench.domain.framework import Elementwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Those of one layer on one device at a number of samples, in elements.

    hidden: between the products. gathered: the same where the first products of both parts read it: with the whole
    sequence. routed: of it what the feed-forward part reads. queries, keys: of all heads. inner: one activation of
    the feed-forward part. branches: 2 where that is gated. rms: whether norms scale and do not shift.
    mask: of a dropout, as a share of the bytes of an activation; 0 where there is none.
    repeats_keys: whether keys and values are written once for each head of queries.
    parts: with a residual around each.
    """

    hidden: float
    gathered: float
    routed: float
    queries: float
    keys: float
    inner: float
    branches: int
    rms: bool
    mask: float
    repeats_keys: bool
    parts: int = 2


class ElementwiseKernels(ABC):
    """Seconds of kernels, part by part. A layer has two norms and two residuals.

    size: bytes of an element. stream_s: seconds of a kernel that moves so many bytes.
    """

    def __init__(self, size: int, stream_s: Callable[[float], float]) -> None:
        self._size, self._stream_s = size, stream_s

    @abstractmethod
    def norm(self, elements: float, rms: bool) -> list[float]:
        """One norm. rms: whether it scales and does not shift."""

    @abstractmethod
    def norm_backward(self, elements: float, rms: bool) -> list[float]:
        """The backward of one norm."""

    @abstractmethod
    def rotations(self, layer: Activations) -> list[float]:
        """Queries and keys are rotated, or laid out for attention; keys and values repeated."""

    @abstractmethod
    def rotations_backward(self, layer: Activations) -> list[float]:
        """The backward of `rotations`."""

    @abstractmethod
    def activation(self, layer: Activations) -> list[float]:
        """Of the feed-forward part."""

    @abstractmethod
    def activation_backward(self, layer: Activations) -> list[float]:
        """The backward of `activation`."""

    @abstractmethod
    def residual(self, layer: Activations) -> list[float]:
        """One residual, with its dropout."""

    @abstractmethod
    def residual_backward(self, layer: Activations) -> list[float]:
        """The backward of one residual, sums apart."""

    @abstractmethod
    def sums(self, layer: Activations) -> list[float]:
        """Gradients of tensors with several readers are added."""

    def _moved(self, passes: float, elements: float) -> float:
        """A kernel that reads and writes so many elements so often."""
        return self._stream_s(passes * (self._size * elements))

    def _repeats(self, layer: Activations) -> list[float]:
        """Keys and values are read once and written for each head of queries, or the other way round."""
        return [self._moved(1, layer.queries + layer.keys)] * 2 if layer.repeats_keys else []


class FusedKernels(ElementwiseKernels):
    """One kernel each, written so or made by a compiler."""

    def norm(self, elements: float, rms: bool) -> list[float]:
        del rms  # either takes one pass
        return [self._moved(2, elements)]

    def norm_backward(self, elements: float, rms: bool) -> list[float]:
        del rms
        return [self._moved(3, elements)]

    def rotations(self, layer: Activations) -> list[float]:
        return [self._moved(2, layer.queries), *self._repeats(layer)]

    def rotations_backward(self, layer: Activations) -> list[float]:
        return [self._moved(3, layer.queries), *self._repeats(layer)]

    def activation(self, layer: Activations) -> list[float]:
        return [self._moved(layer.branches + 1, layer.inner)]

    def activation_backward(self, layer: Activations) -> list[float]:
        return [self._moved(2 * layer.branches + 1, layer.inner)]

    def residual(self, layer: Activations) -> list[float]:
        return [self._moved(3 + layer.mask, layer.hidden)]

    def residual_backward(self, layer: Activations) -> list[float]:
        return [self._moved(2 + layer.mask, layer.hidden)]

    def sums(self, layer: Activations) -> list[float]:
        return [self._moved(2, layer.hidden)] * layer.parts


class EagerKernels(ElementwiseKernels):
    """One kernel for each operation of PyTorch; RMS norms and rotations compute in fp32.

    A norm that shifts (LayerNorm) is one operation. A kernel whose tensors are small takes no time of the device,
    but the host launches it.
    """

    def norm(self, elements: float, rms: bool) -> list[float]:
        if not rms:
            return [self._moved(2, elements)]
        square, mean, scale = self._wide(2, elements), self._wide(1, elements), self._wide(2, elements)
        epsilon = root = 0.0
        weight = self._moved(2, elements)
        return [*self._cast(elements), square, mean, epsilon, root, scale, *self._cast(elements), weight]

    def norm_backward(self, elements: float, rms: bool) -> list[float]:
        if not rms:
            return [self._moved(3, elements)]
        weight = [self._moved(2, elements), self._moved(3, elements), self._moved(1, elements), 0.0]
        scale = [self._wide(3, elements), self._wide(2, elements), self._wide(1, elements)]
        root_and_mean = [0.0, 0.0, 0.0, self._wide(1, elements)]
        square = [self._wide(2, elements), self._wide(2, elements), self._wide(3, elements)]
        both = self._wide(3, elements)
        casts = self._cast(elements)
        return [*weight, *casts, *scale, *root_and_mean, *square, both, *casts]

    def rotations(self, layer: Activations) -> list[float]:
        return [*self._rotated(layer.queries), *self._rotated(layer.keys), *self._repeats(layer)]

    def rotations_backward(self, layer: Activations) -> list[float]:
        conjugates = [0.0, 0.0]
        return [*self._repeats(layer), *conjugates, *self._rotated(layer.keys), *self._rotated(layer.queries)]

    def activation(self, layer: Activations) -> list[float]:
        return [self._moved(2, layer.inner), *[self._moved(3, layer.inner)] * (layer.branches - 1)]

    def activation_backward(self, layer: Activations) -> list[float]:
        return [self._moved(3, layer.inner)] * (2 * (layer.branches - 1) + 1)

    def residual(self, layer: Activations) -> list[float]:
        return [*self._dropout(layer), self._moved(3, layer.hidden)]

    def residual_backward(self, layer: Activations) -> list[float]:
        return self._dropout(layer)

    def sums(self, layer: Activations) -> list[float]:
        """Of the residuals, of query, key and value, and of the branches."""
        heads, branches = (
            [self._moved(3, layer.gathered)] * (2 if layer.queries else 0),
            [self._moved(3, layer.routed)] * (layer.branches - 1),
        )
        return [*[self._moved(3, layer.hidden)] * layer.parts, *heads, *branches]

    def _dropout(self, layer: Activations) -> list[float]:
        return [self._moved(2 + layer.mask, layer.hidden)] if layer.mask else []

    def _rotated(self, elements: float) -> list[float]:
        """The product of complex numbers."""
        return [*self._cast(elements), self._wide(2, elements), *self._cast(elements)]

    def _wide(self, passes: int, elements: float) -> float:
        """The same as `_moved` in fp32."""
        return self._stream_s(passes * WIDE_BYTES * elements)

    def _cast(self, elements: float) -> list[float]:
        """To fp32 or from it; nothing is to be done where all is in fp32."""
        return [self._stream_s((self._size + WIDE_BYTES) * elements)] if self._size != WIDE_BYTES else []


ELEMENTWISE: dict[Elementwise, type[ElementwiseKernels]] = {"fused": FusedKernels, "eager": EagerKernels}
