"""Options of a stack of Transformer layers."""

from pipebench.domain.value import Value, require


class TransformerOptions(Value, frozen=True, kw_only=True):
    """layers: Transformer layers. hidden: width of a token; ffn: width inside the feed-forward part.
    heads: attention heads, they divide hidden. sequence: tokens a sample. residual: residual connections
    and layer norms (before each part and at the end).
    """

    layers: int = 32
    hidden: int = 1024
    ffn: int = 4096
    heads: int = 16
    sequence: int = 256
    residual: bool = False

    def __post_init__(self) -> None:
        require_positive(self, "layers", "hidden", "ffn", "heads", "sequence")
        require(self.hidden % self.heads == 0, f"heads={self.heads} does not divide hidden={self.hidden}")


def require_positive(options: Value, *names: str) -> None:
    """Raise InvalidValue for the first of these options that is below 1."""
    for name in names:
        number = getattr(options, name)
        require(number >= 1, f"{name} is {number}, it must be at least 1")
