"""Parameters and FLOP of the models against published values."""

from typing import Any

import pytest

from pipebench.costs.shapes.flops import forward_flops, graph_flops
from pipebench.domain.graph import OperatorGraph
from tests.models.zoo import model


def parameters(graph: OperatorGraph) -> int:
    return sum(graph.parameter_bytes.values()) // 4


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        # torchvision's model table: 25,557,032 parameters.
        ("resnet50", {}, 25_557_032),
        # The last layer is 2048 x classes and a bias.
        ("resnet50", {"classes": 10}, 25_557_032 - 990 * 2049),
        ("resnet50", {"image_size": 1000}, 25_557_032),
        # torchvision's model table again; Inception v3 there counts its auxiliary classifier, which is
        # 768 x 128 and 128 x 768 x 5 x 5 weights, two batch norms and 769 x 1000.
        ("resnet101", {}, 44_549_160),
        ("inception_v3", {"auxiliary": True}, 27_161_264),
        ("inception_v3", {}, 27_161_264 - (768 * 128 + 128 * 768 * 25 + 2 * (128 + 768) + 769 * 1000)),
        ("densenet121", {}, 7_978_856),
        ("vgg16", {}, 138_357_544),
        ("vgg16", {"image_size": 1000}, 138_357_544),
        # A Transformer layer: 12 h^2 weights, and biases of the feed-forward part 4 h + h.
        ("transformer", {}, 32 * (12 * 1024**2 + 5 * 1024)),
        ("transformer", {"layers": 3, "hidden": 64, "ffn": 256, "heads": 4}, 3 * (12 * 64**2 + 5 * 64)),
        ("mmt", {}, 32 * (12 * 1024**2 + 5 * 1024)),
        ("mmt", {"branches": 2}, 16 * (12 * 1024**2 + 5 * 1024)),
        ("case-study", {}, 8 * (12 * 1024**2 + 5 * 1024)),
        # Tables of 10^6 x 64; layers of 4096; the first one behind the interaction reads 7 x 4096 + 7 x 6400.
        (
            "dlrm",
            {},
            7 * 64 * 10**6 + 31 * (4096**2 + 4096) + 4096 * (7 * 4096 + 7 * 6400) + 4096,
        ),
        ("candle-uno", {}, 28 * (4096**2 + 4096) + 7 * 4096 + 1),
        # OpenAI's ViT-B/32: 151,277,313, of them 4 biases in each of 12 + 12 attentions, which we leave out.
        # Devlin et al., section 3: 110M and 340M; the exact counts of the published pre-training models.
        ("bert", {}, 110_106_428),
        ("bert", {"layers": 24, "hidden": 1024}, 336_226_108),
        # RaNNC, section IV-B: 12.9 billion; 12 h^2 + 13 h a layer, tables, pooler, transform, both outputs.
        (
            "bert",
            {"layers": 256, "hidden": 2048},
            256 * (12 * 2048**2 + 13 * 2048)
            + (30522 + 512 + 2 + 2) * 2048
            + (2048**2 + 2048)
            + (2048**2 + 3 * 2048)
            + 30522
            + 2 * 2049,
        ),
        # torchvision's model table.
        ("resnet152", {}, 60_192_808),
        ("clip", {}, 151_277_313 - 12 * 4 * (768 + 512)),
        # Two layer norms a layer and one at the end of each branch, 2 h parameters each.
        ("mmt", {"residual": True}, 32 * (12 * 1024**2 + 5 * 1024) + (64 + 4) * 2048),
    ],
)
def test_parameters(name: str, options: dict[str, Any], expected: int) -> None:
    assert parameters(model(name, **options)) == expected


@pytest.mark.parametrize(
    ("name", "options", "operators"),
    [
        ("resnet50", {}, 175),
        # 33 blocks of 10, four of them with a projection and its norm; 4 before, 3 behind.
        ("resnet101", {}, 4 + 33 * 10 + 4 * 2 + 3),
        # 94 convolutions with norm and relu, 9 average and 4 max poolings, 11 + 4 joins, a head of 4.
        ("inception_v3", {}, 94 * 3 + 9 + 4 + 15 + 4),
        ("inception_v3", {"auxiliary": True}, 324),
        # Stem 4, 58 layers of 7, 3 transitions of 4, head 5.
        ("densenet121", {}, 4 + 58 * 7 + 3 * 4 + 5),
        # 13 convolutions with relu, 5 poolings, average, flatten, and 3 + 3 + 1.
        ("vgg16", {}, 13 * 2 + 5 + 2 + 7),
        ("transformer", {}, 96),
        ("mmt", {}, 97),
        ("mmt", {"branches": 2}, 49),
        ("mmt", {"branches": 2, "residual": True}, 115),
        ("case-study", {}, 25),
        ("dlrm", {}, 40),
        ("dlrm", {"dense": 4, "sparse": 4}, 25),
        ("candle-uno", {}, 30),
        ("candle-uno", {"branches": 16}, 66),
        ("clip", {}, 180),
        # 56 tasks a layer, 51 besides; RaNNC's section III-B says about 15,000 for 256 layers.
        ("bert", {}, 12 * 56 + 51),
        ("bert", {"layers": 256, "hidden": 2048}, 14387),
        ("resnet152", {}, 4 + 50 * 10 + 4 * 2 + 3),
    ],
)
def test_operators(name: str, options: dict[str, Any], operators: int) -> None:
    assert len(model(name, **options).operators) == operators


def test_resnet50_multiply_adds() -> None:
    """4.09 GMAC at 224 (torchvision's model table) for convolutions and the last layer, 4.12 with the rest."""
    graph = model("resnet50")
    contractions = sum(forward_flops(op) for op in graph.operators if op.kind in ("conv2d", "linear"))
    assert contractions / 2 / 1e9 == pytest.approx(4.09, abs=0.005)
    assert graph_flops(graph) / 2 / 1e9 == pytest.approx(4.12, abs=0.005)


@pytest.mark.parametrize(
    ("name", "gmac"), [("resnet101", 7.80), ("inception_v3", 5.71), ("densenet121", 2.83), ("vgg16", 15.47)]
)
def test_multiply_adds_of_convolutional_networks(name: str, gmac: float) -> None:
    """torchvision's model table: convolutions and linears at 224 (Inception v3: 299)."""
    contractions = sum(forward_flops(op) for op in model(name).operators if op.kind in ("conv2d", "linear"))
    assert contractions / 2 / 1e9 == pytest.approx(gmac, abs=0.005)


@pytest.mark.parametrize(("branches", "gflop"), [(4, 644), (2, 322)])
def test_multi_modal_transformer_flop(branches: int, gflop: int) -> None:
    """644 and 322 GFLOP a sample for forward and backward; the backward is twice the forward."""
    assert round(3 * graph_flops(model("mmt", branches=branches)) / 1e9) == gflop


def test_the_published_sizes_of_the_enlarged_models() -> None:
    """RaNNC, section IV-B: 12.9 billion parameters (256 layers of 2048), 3.7 billion (ResNet152x8)."""
    assert 12.9 <= parameters(model("bert", layers=256, hidden=2048)) / 1e9 < 13.0
    assert round(parameters(model("resnet152", width=8)) / 1e9, 1) == 3.7


def test_sequential_transformer_does_the_work_of_the_branches() -> None:
    assert graph_flops(model("transformer")) == graph_flops(model("mmt"))
