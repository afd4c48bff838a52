"""Options of the convolutional networks."""

from pipebench.domain.value import Value, require
from pipebench_models.transformer_options import require_positive


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
