"""What this plugin offers: model descriptors and their options."""

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Model

PIPEBENCH_API = 1


class ResNet50Options(Value, frozen=True, kw_only=True):
    """image_size: pixels on each side of a square RGB image. classes: width of the last layer."""

    image_size: int = 224
    classes: int = 1000

    def __post_init__(self) -> None:
        _require_positive(self, "image_size", "classes")


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


GRAPHPIPE = "Jeon et al., GraphPipe, ASPLOS 2025"


@hookimpl
def pipebench_models() -> tuple[Model, ...]:
    """ResNet-50 and the two Transformers of the GraphPipe paper."""
    return (
        Model(
            name="resnet50",
            summary="ResNet-50 as torchvision builds it, for images of any size",
            load="pipebench_models.resnet50:build",
            options=ResNet50Options,
            reference="He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
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
