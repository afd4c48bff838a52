"""Options of a language model: the figures of a Hugging Face config.json."""

from typing import Literal

from pipebench.domain.value import Value, require
from pipebench_models.transformer_options import require_positive

Architecture = Literal["llama", "gpt2", "bert", "mixtral"]


class LLMOptions(Value, frozen=True, kw_only=True):
    """architecture: how a layer is built. layers, hidden, heads, ffn: as in the config. kv_heads: key and value
    heads (0: as many as heads). head: width of a head (0: hidden / heads). vocab: entries of the table.
    sequence: tokens a sample. positions: learned positions (0: as many as tokens; gpt2 and bert only).
    token_types: bert's. experts, active: feed-forward parts, and how many of them a token passes (mixtral).
    tied: head and embedding share a table. dropout: whether its masks are kept.
    """

    architecture: Architecture = "llama"
    layers: int = 32
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 0
    head: int = 0
    ffn: int = 11008
    vocab: int = 32000
    sequence: int = 2048
    positions: int = 0
    token_types: int = 2
    experts: int = 1
    active: int = 1
    tied: bool = False
    dropout: bool = False

    def __post_init__(self) -> None:
        require_positive(self, "layers", "hidden", "heads", "ffn", "vocab", "sequence", "experts", "active")
        for name in ("kv_heads", "head", "positions", "token_types"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")
        require(
            self.head > 0 or self.hidden % self.heads == 0,
            f"heads={self.heads} does not divide hidden={self.hidden}, so the width of a head is not known",
        )
        require(
            self.heads % (self.kv_heads or self.heads) == 0,
            f"kv_heads={self.kv_heads} does not divide heads={self.heads}",
        )
        require(
            self.active <= self.experts, f"active={self.active} of experts={self.experts}: there are not as many"
        )
        require(
            self.experts == 1 or self.architecture == "mixtral",
            f"experts={self.experts}: only architecture=mixtral has several",
        )
        require(
            self.positions == 0 or self.sequence <= self.positions,
            f"sequence={self.sequence} is longer than the {self.positions} positions that the model has learned",
        )
