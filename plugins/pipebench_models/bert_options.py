"""Options of BERT."""

from pipebench.domain.value import Value, require
from pipebench_models.transformer_options import require_positive

HEAD = 64
"""Width of one attention head in all published sizes."""


class BertOptions(Value, frozen=True, kw_only=True):
    """BERT-base unless said otherwise.

    layers, hidden: of the encoder; heads: of an attention, 0 for one of 64 features each; ffn: width inside the
    feed-forward part, 0 for four times hidden. sequence: tokens a sample; vocabulary: words; positions: the
    longest sequence that the table has.
    """

    layers: int = 12
    hidden: int = 768
    heads: int = 0
    ffn: int = 0
    sequence: int = 512
    vocabulary: int = 30522
    positions: int = 512

    def __post_init__(self) -> None:
        require_positive(self, "layers", "hidden", "sequence", "vocabulary", "positions")
        for name in ("heads", "ffn"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")
        each = self.heads or HEAD
        what = f"heads={self.heads}" if self.heads else f"the width of a head, {HEAD},"
        require(self.hidden % each == 0, f"{what} does not divide hidden={self.hidden}")
        require(
            self.sequence <= self.positions,
            f"sequence is {self.sequence}, there are vectors for {self.positions} positions",
        )

    @property
    def head_count(self) -> int:
        """Heads of an attention."""
        return self.heads or self.hidden // HEAD

    @property
    def inner(self) -> int:
        """Width inside the feed-forward part."""
        return self.ffn or 4 * self.hidden
