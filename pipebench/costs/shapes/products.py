"""A matrix product of a Transformer layer."""

from dataclasses import dataclass

SPLIT_BY_INPUT = ("out", "down", "shared_down", "mamba_out")
"""Products that tensor parallelism splits by their inputs; all others of a layer by their outputs."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product of `rows` rows: inner x outer weights, times `copies` (experts).

    split: whether tensor parallelism shares out its weights. by_tokens: where it does not, whether each device
    works on its own part of the sequence.
    """

    name: str
    rows: float
    inner: int
    outer: int
    copies: int = 1
    split: bool = True
    by_tokens: bool = False

    @property
    def flops(self) -> float:
        """Of the forward, for one sample."""
        return 2.0 * self.rows * self.inner * self.outer

    @property
    def weights(self) -> int:
        """Elements of all copies."""
        return self.inner * self.outer * self.copies
