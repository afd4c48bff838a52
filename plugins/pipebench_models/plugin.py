"""What this plugin offers: model descriptors and their options."""

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Model

PIPEBENCH_API = 1


class ImageOptions(Value, frozen=True, kw_only=True):
    """image_size: pixels on each side of a square RGB image. classes: width of the last layer."""

    image_size: int = 224
    classes: int = 1000

    def __post_init__(self) -> None:
        _require_positive(self, "image_size", "classes")
        least = self.least_image_size
        require(self.image_size >= least, f"image_size is {self.image_size}, it must be at least {least}")

    @property
    def least_image_size(self) -> int:
        """The smallest image that leaves at least one pixel everywhere."""
        return 1


class PooledImageOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions, for networks whose poolings are not padded: an image is halved five times."""

    @property
    def least_image_size(self) -> int:
        """2^5."""
        return 32


class InceptionOptions(ImageOptions, frozen=True, kw_only=True):
    """As ImageOptions. auxiliary: with the second classifier that training adds, which makes a second output."""

    image_size: int = 299
    auxiliary: bool = False

    @property
    def least_image_size(self) -> int:
        """One pixel behind the last pooling, or in the auxiliary classifier's second convolution."""
        return 299 if self.auxiliary else 75


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
        _require_positive(self, "layers", "hidden", "ffn", "heads", "sequence")
        require(self.hidden % self.heads == 0, f"heads={self.heads} does not divide hidden={self.hidden}")


class MMTOptions(TransformerOptions, frozen=True, kw_only=True):
    """As TransformerOptions. branches: parallel modalities; layers: Transformer layers of each branch."""

    branches: int = 4
    layers: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "branches")


def _require_positive(options: Value, *names: str) -> None:
    for name in names:
        number = getattr(options, name)
        require(number >= 1, f"{name} is {number}, it must be at least 1")


TORCHVISION = "as torchvision builds it, for images of any size"
RESNET = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016"
GRAPHPIPE = "Jeon et al., GraphPipe, ASPLOS 2025"


@hookimpl
def pipebench_models() -> tuple[Model, ...]:
    """Five convolutional networks and the two Transformers of the GraphPipe paper."""
    return (
        *image_models(),
        Model(
            name="mmt",
            summary="Multi-Modal Transformer: parallel branches of layers, concatenated at the end",
            load="pipebench_models.mmt:build",
            options=MMTOptions,
            reference=f"{GRAPHPIPE}, appendix A.2",
            deviations=(
                "inputs are embedded tokens: no embedding table and no loss",
                "no residual connections and layer norms unless residual=true",
            ),
        ),
        Model(
            name="transformer",
            summary="sequential Transformer with the configuration of the Multi-Modal Transformer",
            load="pipebench_models.transformer:build",
            options=TransformerOptions,
            reference=f"{GRAPHPIPE}, appendix A.3",
            deviations=(
                "inputs are embedded tokens: no embedding table and no loss",
                "no residual connections and layer norms unless residual=true",
            ),
        ),
    )


def image_models() -> tuple[Model, ...]:
    """The networks of the MadPipe paper's figures, and VGG-16."""
    return (
        Model(
            name="resnet50",
            summary=f"ResNet-50 {TORCHVISION}",
            load="pipebench_models.resnet:build_resnet50",
            options=ImageOptions,
            reference=RESNET,
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
        Model(
            name="resnet101",
            summary=f"ResNet-101 {TORCHVISION}",
            load="pipebench_models.resnet:build_resnet101",
            options=ImageOptions,
            reference=RESNET,
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
        Model(
            name="inception_v3",
            summary=f"Inception v3 {TORCHVISION}",
            load="pipebench_models.inception_v3:build",
            options=InceptionOptions,
            reference="Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016",
            deviations=("no auxiliary classifier unless auxiliary=true", "no loss"),
        ),
        Model(
            name="densenet121",
            summary=f"DenseNet-121 {TORCHVISION}",
            load="pipebench_models.densenet121:build",
            options=PooledImageOptions,
            reference="Huang et al., Densely Connected Convolutional Networks, CVPR 2017",
            deviations=(
                "a dense layer joins its channels to one tensor of all channels before it, as torchvision's first "
                "release did; later releases keep the features apart, with the same bytes",
                "no loss",
            ),
        ),
        Model(
            name="vgg16",
            summary=f"VGG-16 {TORCHVISION}",
            load="pipebench_models.vgg16:build",
            options=PooledImageOptions,
            reference="Simonyan, Zisserman, Very Deep Convolutional Networks, ICLR 2015, configuration D",
            deviations=("no loss",),
        ),
    )
