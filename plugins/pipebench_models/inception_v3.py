"""Inception v3 (Szegedy et al. 2016) as torchvision builds it: stem, eleven mixed blocks, head."""

from typing import cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench_models.graph_builder import Activation, GraphBuilder
from pipebench_models.operators import (
    Pair,
    average_pool,
    batch_norm,
    concat_channels,
    conv2d,
    dropout,
    flatten,
    global_average_pool,
    linear,
    max_pool,
    relu,
)
from pipebench_models.options import InceptionOptions

ROW, COLUMN = (1, 7), (7, 1)


def basic_conv(
    graph: GraphBuilder,
    name: str,
    x: Activation,
    channels: int,
    *,
    kernel: int | Pair = 1,
    stride: int = 1,
    padding: int | None = None,
) -> Activation:
    """Convolution, batch norm, relu; padding None: such that stride 1 keeps the size."""
    y = conv2d(graph, f"{name}.conv", x, channels, kernel=kernel, stride=stride, padding=padding)
    return relu(graph, f"{name}.relu", batch_norm(graph, f"{name}.bn", y), path=name)


class _Block:
    """One block: branches that start at its input and meet in a concat."""

    def __init__(self, graph: GraphBuilder, name: str, x: Activation) -> None:
        assert graph.layer is not None
        graph.layer += 1
        self.graph, self.name, self.x = graph, name, x

    def conv(self, branch: str, channels: int, x: Activation | None = None, kernel: int | Pair = 1) -> Activation:
        return basic_conv(self.graph, f"{self.name}.{branch}", x or self.x, channels, kernel=kernel)

    def halving(self, branch: str, channels: int, x: Activation | None = None) -> Activation:
        name = f"{self.name}.{branch}"
        return basic_conv(self.graph, name, x or self.x, channels, kernel=3, stride=2, padding=0)

    def pool_branch(self, channels: int) -> Activation:
        pooled = average_pool(self.graph, f"{self.name}.pool", self.x, kernel=3, stride=1, padding=1)
        return self.conv("branch_pool", channels, pooled)

    def halve(self) -> Activation:
        return max_pool(self.graph, f"{self.name}.pool", self.x, kernel=3, stride=2)

    def concat(self, *parts: Activation, name: str = "concat") -> Activation:
        return concat_channels(self.graph, f"{self.name}.{name}", parts)

    def split(self, branch: str, x: Activation) -> Activation:
        """1x3 and 3x1 side by side."""
        wide = self.conv(f"{branch}a", 384, x, kernel=(1, 3))
        return self.concat(wide, self.conv(f"{branch}b", 384, x, kernel=(3, 1)), name=f"{branch}.concat")


def block_a(graph: GraphBuilder, name: str, x: Activation, pooled: int) -> Activation:
    """35 x 35 at image size 299: 1x1, 5x5, two 3x3, pooling."""
    block = _Block(graph, name, x)
    one = block.conv("branch1x1", 64)
    five = block.conv("branch5x5_2", 64, block.conv("branch5x5_1", 48), kernel=5)
    three = block.conv("branch3x3dbl_2", 96, block.conv("branch3x3dbl_1", 64), kernel=3)
    three = block.conv("branch3x3dbl_3", 96, three, kernel=3)
    return block.concat(one, five, three, block.pool_branch(pooled))


def block_b(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Halves the side, 35 to 17."""
    block = _Block(graph, name, x)
    three = block.halving("branch3x3", 384)
    double = block.conv("branch3x3dbl_2", 96, block.conv("branch3x3dbl_1", 64), kernel=3)
    double = block.halving("branch3x3dbl_3", 96, double)
    return block.concat(three, double, block.halve())


def block_c(graph: GraphBuilder, name: str, x: Activation, inner: int) -> Activation:
    """17 x 17: 1x1, one and two 7x7 in rows and columns, pooling."""
    block = _Block(graph, name, x)
    one = block.conv("branch1x1", 192)
    seven = block.conv("branch7x7_2", inner, block.conv("branch7x7_1", inner), kernel=ROW)
    seven = block.conv("branch7x7_3", 192, seven, kernel=COLUMN)
    double = block.conv("branch7x7dbl_2", inner, block.conv("branch7x7dbl_1", inner), kernel=COLUMN)
    double = block.conv("branch7x7dbl_3", inner, double, kernel=ROW)
    double = block.conv("branch7x7dbl_4", inner, double, kernel=COLUMN)
    double = block.conv("branch7x7dbl_5", 192, double, kernel=ROW)
    return block.concat(one, seven, double, block.pool_branch(192))


def block_d(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Halves the side, 17 to 8."""
    block = _Block(graph, name, x)
    three = block.halving("branch3x3_2", 320, block.conv("branch3x3_1", 192))
    seven = block.conv("branch7x7x3_2", 192, block.conv("branch7x7x3_1", 192), kernel=ROW)
    seven = block.conv("branch7x7x3_3", 192, seven, kernel=COLUMN)
    seven = block.halving("branch7x7x3_4", 192, seven)
    return block.concat(three, seven, block.halve())


def block_e(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """8 x 8: 1x1, 3x3 and two 3x3 whose last part is a row beside a column, pooling."""
    block = _Block(graph, name, x)
    one = block.conv("branch1x1", 320)
    three = block.split("branch3x3_2", block.conv("branch3x3_1", 384))
    double = block.conv("branch3x3dbl_2", 384, block.conv("branch3x3dbl_1", 448), kernel=3)
    return block.concat(one, three, block.split("branch3x3dbl_3", double), block.pool_branch(192))


def build_inception_v3(context: Context) -> OperatorGraph:
    """314 operators, 324 with the auxiliary classifier; `layer` counts the stem, the eleven blocks, the head."""
    options = cast(InceptionOptions, context.options)
    graph = GraphBuilder("inception_v3")
    trunk(graph, options.image_size, options.classes, options.auxiliary)
    return graph.graph()


def trunk(graph: GraphBuilder, image_size: int, classes: int, auxiliary: bool = False) -> Activation:
    """The whole network; returns what its last layer makes."""
    graph.layer = 0
    x = _stem(graph, graph.input("image", 3, image_size, image_size))
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = block_a(graph, f"Mixed_{name}", x, pooled)
    x = block_b(graph, "Mixed_6a", x)
    for name, inner in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = block_c(graph, f"Mixed_{name}", x, inner)
    if auxiliary:
        _auxiliary(graph, x, classes)
    x = block_d(graph, "Mixed_7a", x)
    for name in ("7b", "7c"):
        x = block_e(graph, f"Mixed_{name}", x)
    graph.layer += 1
    x = flatten(graph, "flatten", global_average_pool(graph, "avgpool", x))
    return linear(graph, "fc", dropout(graph, "dropout", x), classes)


def _stem(graph: GraphBuilder, x: Activation) -> Activation:
    x = basic_conv(graph, "Conv2d_1a_3x3", x, 32, kernel=3, stride=2, padding=0)
    x = basic_conv(graph, "Conv2d_2a_3x3", x, 32, kernel=3, padding=0)
    x = basic_conv(graph, "Conv2d_2b_3x3", x, 64, kernel=3)
    x = max_pool(graph, "maxpool1", x, kernel=3, stride=2)
    x = basic_conv(graph, "Conv2d_3b_1x1", x, 80, kernel=1)
    x = basic_conv(graph, "Conv2d_4a_3x3", x, 192, kernel=3, padding=0)
    return max_pool(graph, "maxpool2", x, kernel=3, stride=2)


def _auxiliary(graph: GraphBuilder, x: Activation, classes: int) -> None:
    """The second classifier, which training adds behind Mixed_6e."""
    y = average_pool(graph, "AuxLogits.pool", x, kernel=5, stride=3)
    y = basic_conv(graph, "AuxLogits.conv0", y, 128, kernel=1)
    y = basic_conv(graph, "AuxLogits.conv1", y, 768, kernel=5, padding=0)
    y = flatten(graph, "AuxLogits.flatten", global_average_pool(graph, "AuxLogits.avgpool", y))
    linear(graph, "AuxLogits.fc", y, classes)
