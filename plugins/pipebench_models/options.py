"""Options of the models."""

from pipebench.domain.limits import MOST_LAYERS
from pipebench.domain.value import Value, require


class TransformerOptions(Value, frozen=True, kw_only=True):
    """Options of Transformers.

    - layers: Transformer layers.
    - hidden: width of a token.
    - ffn: width inside the feed-forward part.
    - heads: attention heads; they divide hidden.
    - sequence: tokens a sample.
    - residual: residual connections and layer norms (before each part and at the end).
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


COUNTED = ("layers", "branches", "dense", "sparse", "top", "mtp", "image_layers", "text_layers")
"""Options of which each becomes operators of its own."""
BRANCHES = ("branches", "dense")
"""Options of which each has `layers` layers."""


def require_positive(options: Value, *names: str) -> None:
    """Raise InvalidValue for the first of these options that is below 1."""
    for name in names:
        number = getattr(options, name)
        require(number >= 1, f"{name} is {number}, it must be at least 1")
    require_bounded(options)


def require_bounded(options: Value) -> None:
    """Raise InvalidValue for the first option whose model is too large to be built, whatever its sizes are."""
    for name in COUNTED:
        number = getattr(options, name, 0)
        require(number <= MOST_LAYERS, f"{name} is {number}, it must be at most {MOST_LAYERS}")
    layers = getattr(options, "layers", 0)
    for name in BRANCHES:
        number = getattr(options, name, 0)
        require(
            number * layers <= MOST_LAYERS,
            f"{name}={number} of layers={layers} are {number * layers} layers, there may be {MOST_LAYERS}",
        )


HEAD = 64
"""Width of one attention head in all published sizes."""


class BertOptions(Value, frozen=True, kw_only=True):
    """Options of BERT; the defaults are those of BERT-base.

    - layers, hidden: of the encoder.
    - heads: of an attention, 0 for one of 64 features each.
    - ffn: width inside the feed-forward part, 0 for four times hidden.
    - sequence: tokens a sample.
    - vocabulary: words.
    - positions: the longest sequence that the table has.
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


class ImageOptions(Value, frozen=True, kw_only=True):
    """image_size: pixels on each side of a square RGB image. classes: width of the last layer."""

    image_size: int = 224
    classes: int = 1000

    def __post_init__(self) -> None:
        require_positive(self, "image_size", "classes")
        least = self.least_image_size
        require(self.image_size >= least, f"image_size is {self.image_size}, it must be at least {least}")

    @property
    def least_image_size(self) -> int:
        """The smallest image that leaves at least one pixel everywhere."""
        return 1


class ResNetOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions. width: times as many filters in every convolution (Big Transfer's and RaNNC's factor)."""

    width: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "width")


class PooledImageOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions, for networks whose poolings are not padded: an image is halved five times."""

    @property
    def least_image_size(self) -> int:
        """2^5."""
        return 32


class AlexNetOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions, with the sizes of PaSE's prototype."""

    image_size: int = 227
    classes: int = 1024

    @property
    def least_image_size(self) -> int:
        """One pixel behind the last pooling."""
        return 67


class PlainInceptionOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions, without a second classifier."""

    image_size: int = 299

    @property
    def least_image_size(self) -> int:
        """One pixel behind the last pooling."""
        return 75


class InceptionOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions. auxiliary: with the second classifier that training adds, which makes a second output."""

    image_size: int = 299
    auxiliary: bool = False

    @property
    def least_image_size(self) -> int:
        """One pixel behind the last pooling, or in the auxiliary classifier's second convolution."""
        return 299 if self.auxiliary else 75


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
