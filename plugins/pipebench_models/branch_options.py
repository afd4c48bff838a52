"""Options of the models whose branches run side by side."""

from pipebench.domain.value import Value, require
from pipebench_models.transformer_options import TransformerOptions, require_positive


class MMTOptions(TransformerOptions, frozen=True, kw_only=True):
    """As TransformerOptions. branches: parallel modalities; layers: Transformer layers of each branch."""

    branches: int = 4
    layers: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "branches")


class CaseStudyOptions(MMTOptions, frozen=True, kw_only=True):
    """As MMTOptions, with the two branches of four layers of the case study."""

    branches: int = 2
    layers: int = 4


class TinyMMTOptions(MMTOptions, frozen=True, kw_only=True):
    """As MMTOptions, small enough for a CPU: two branches of two narrow layers."""

    branches: int = 2
    layers: int = 2
    hidden: int = 64
    ffn: int = 256
    heads: int = 4
    sequence: int = 32


class DLRMOptions(Value, frozen=True, kw_only=True):
    """dense, sparse: branches of dense and of categorical features. layers: feed-forward layers of a dense branch;
    top: those behind the interaction; hidden: the width of all of them. embedding: width of an entry; bag: entries
    looked up for each sample, which are concatenated; entries: of one table.
    """

    dense: int = 7
    sparse: int = 7
    layers: int = 4
    top: int = 4
    hidden: int = 4096
    embedding: int = 64
    bag: int = 100
    entries: int = 1_000_000

    def __post_init__(self) -> None:
        require_positive(self, "layers", "top", "hidden", "embedding", "bag", "entries")
        for name in ("dense", "sparse"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")
        require(self.dense + self.sparse >= 1, "dense and sparse are 0, the model has no branch")


class CandleUnoOptions(Value, frozen=True, kw_only=True):
    """branches: groups of features; layers: feed-forward layers of each; hidden: their width and their input's.
    outputs: width of the last layer.
    """

    branches: int = 7
    layers: int = 4
    hidden: int = 4096
    outputs: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "branches", "layers", "hidden", "outputs")


class CLIPOptions(Value, frozen=True, kw_only=True):
    """The image branch: image_size and patch in pixels a side, image_width, image_layers, image_heads. The text
    branch: sequence (tokens), vocabulary, text_width, text_layers, text_heads. embedding: width of what both
    branches are compared by. Widths of feed-forward parts are four times those of tokens.
    """

    image_size: int = 224
    patch: int = 32
    image_width: int = 768
    image_layers: int = 12
    image_heads: int = 12
    sequence: int = 77
    vocabulary: int = 49408
    text_width: int = 512
    text_layers: int = 12
    text_heads: int = 8
    embedding: int = 512

    def __post_init__(self) -> None:
        require_positive(self, *self.__struct_fields__)
        require(
            self.image_size % self.patch == 0, f"patch={self.patch} does not divide image_size={self.image_size}"
        )
        for branch in ("image", "text"):
            width, heads = getattr(self, f"{branch}_width"), getattr(self, f"{branch}_heads")
            require(width % heads == 0, f"{branch}_heads={heads} does not divide {branch}_width={width}")
