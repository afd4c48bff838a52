"""What parts that not every layer has run between its products: latent attention, an expert that all tokens pass,
Mamba-2.

moved: seconds of a kernel that reads and writes so many elements so often.
"""

from collections.abc import Callable
from dataclasses import replace

from pipebench.costs.shapes.mamba import ScanStep
from pipebench.costs.shapes.transformer import LayerShape
from pipebench_analytic.elementwise import Activations, ElementwiseKernels
from pipebench_analytic.speeds import Speeds

Moved = Callable[[float, float], float]


class LatentKernels:
    """Norms of what is of low rank, and the heads that are put together; nothing where there is none.

    tokens: of one device, of its part of the sequence where that is split. keys: elements of its heads' keys.
    Each head's key is joined of its own features and of the rotated ones, which all heads share (Megatron-LM,
    multi_latent_attention.py): a read and a write, in the backward a read, a write and a sum.
    """

    def __init__(
        self, shape: LayerShape, between: ElementwiseKernels, moved: Moved, tokens: float, keys: float
    ) -> None:
        latent = shape.latent
        self._between, self._moved = between, moved
        ranks = (latent.query_rank, latent.key_rank) if latent else ()
        self._normed = tuple(tokens * rank for rank in ranks if rank)
        self._keys = keys if latent else 0.0

    def forward(self) -> list[float]:
        """The kernels in seconds."""
        if not self._keys:
            return []
        norms = [each for elements in self._normed for each in self._between.norm(elements, rms=True)]
        return [*norms, self._moved(2, self._keys)]

    def backward(self) -> list[float]:
        """Those of the backward."""
        if not self._keys:
            return []
        norms = [each for elements in self._normed for each in self._between.norm_backward(elements, rms=True)]
        return [*norms, self._moved(3, self._keys)]


class SharedKernels:
    """An expert that all tokens pass besides: its activation, its gate, and the sum with the others' result."""

    def __init__(
        self, shape: LayerShape, between: ElementwiseKernels, moved: Moved, layer: Activations, inner: float
    ) -> None:
        """inner: elements of one activation of it on one device."""
        self._between, self._moved = between, moved
        self._hidden, self._gated = layer.hidden, shape.shared_gate
        self._layer = replace(layer, inner=inner) if shape.shared_ffn else None

    def forward(self) -> list[float]:
        """The kernels in seconds."""
        if self._layer is None:
            return []
        scaled = [self._moved(2, self._hidden)] if self._gated else []
        return [*self._between.activation(self._layer), *scaled, self._moved(3, self._hidden)]

    def backward(self) -> list[float]:
        """Of the backward: a scaled result is read besides; gradients of what both parts read are added."""
        if self._layer is None:
            return []
        scaled = [self._moved(3, self._hidden)] if self._gated else []
        return [*self._between.activation_backward(self._layer), *scaled, self._moved(3, self._hidden)]


class MambaKernels:
    """The convolution, the scan and the norm of a Mamba-2 part; nothing where there is none.

    No kernel of them is measured: each takes what its products take at the rate of attention's batched products,
    or what it moves takes, whichever is longer. Of several samples what the first product made is copied from
    sequence first to sample first, and the result back (Megatron-LM, core/ssm/mamba_mixer.py).
    """

    def __init__(self, shape: LayerShape, speeds: Speeds, samples: int, ways: int, element_bytes: int) -> None:
        self._mamba, self._sequence, self._speeds = shape.mamba, shape.sequence, speeds
        self._tokens, self._size = samples * shape.sequence / ways, element_bytes
        self._copies = samples > 1

    def forward(self) -> list[float]:
        """The kernels in seconds."""
        return self._steps(self._mamba.forward(self._sequence)) if self._mamba else []

    def backward(self) -> list[float]:
        """Those of the backward."""
        return self._steps(self._mamba.backward(self._sequence)) if self._mamba else []

    def _steps(self, steps: tuple[ScanStep, ...]) -> list[float]:
        assert self._mamba is not None
        widths = (self._mamba.projected, self._mamba.inner) if self._copies else ()
        return [
            *(self._speeds.stream_s(2 * self._size * self._tokens * width) for width in widths),
            *(
                self._speeds.batched_product_s(self._tokens * step.flops, self._tokens * step.bytes(self._size))
                for step in steps
            ),
        ]
