"""Options of the models of the PaSE paper; defaults are those of its released prototype."""

from pipebench.domain.value import Value
from pipebench_models.transformer_options import require_positive


class RNNLMOptions(Value, frozen=True, kw_only=True):
    """vocabulary: words. units: width of embedding, cells and outputs. layers: of LSTM cells.
    sequence: words of a sentence.
    """

    vocabulary: int = 100_000
    units: int = 2048
    layers: int = 2
    sequence: int = 256

    def __post_init__(self) -> None:
        require_positive(self, "vocabulary", "units", "layers", "sequence")


class TranslationOptions(Value, frozen=True, kw_only=True):
    """layers: of the encoder, and as many of the decoder. hidden: width of a token; ffn: inside the feed-forward
    part. heads of `head` features each. vocabulary: words that are scored.
    sequence: tokens of the source and of the target.
    """

    layers: int = 6
    hidden: int = 512
    ffn: int = 2048
    heads: int = 8
    head: int = 64
    vocabulary: int = 50_000
    sequence: int = 256

    def __post_init__(self) -> None:
        require_positive(self, "layers", "hidden", "ffn", "heads", "head", "vocabulary", "sequence")
