"""The graphs carry what planners need: shapes, axes, sizes, structure."""

from collections import Counter
from math import prod
from typing import Any

import pytest

from pipebench.domain.errors import InvalidValue
from tests.models.zoo import DESCRIPTORS, model

SMALL: list[tuple[str, dict[str, Any]]] = [
    ("resnet50", {"image_size": 64}),
    ("resnet101", {"image_size": 64}),
    ("inception_v3", {}),
    ("inception_v3", {"auxiliary": True}),
    ("densenet121", {"image_size": 64}),
    ("vgg16", {"image_size": 300}),
    ("transformer", {"layers": 2, "residual": True}),
    ("mmt", {"layers": 2, "branches": 3, "residual": True}),
    ("case-study", {}),
    ("candle-uno", {"branches": 3}),
    ("clip", {"image_layers": 2, "text_layers": 1}),
    ("bert", {"layers": 1, "hidden": 128, "sequence": 16, "vocabulary": 50}),
    ("resnet152", {"image_size": 64, "width": 2}),
    ("pase-alexnet", {}),
    ("pase-inception_v3", {"image_size": 75}),
    ("pase-rnnlm", {"vocabulary": 100}),
    ("pase-transformer", {"layers": 1, "sequence": 16}),
]


@pytest.mark.parametrize(("name", "options"), SMALL)
def test_every_operand_spans_named_axes_and_parameters_have_their_size(name: str, options: dict[str, Any]) -> None:
    graph = model(name, **options)
    for position, operator in enumerate(graph.operators):
        made = [graph.tensors[tensor].name for tensor in graph.outputs[position]]
        assert set(operator.axes) == {*operator.inputs, *operator.parameters, *made}
        assert "batch" not in operator.dims
        assert all(operator.axes[tensor][0] == "batch" for tensor in (*operator.inputs, *made))
        for parameter in operator.parameters:
            size = prod(operator.dims[axis] for axis in operator.axes[parameter])
            assert graph.parameter_bytes[parameter] == 4 * size


@pytest.mark.parametrize(("name", "options"), SMALL)
def test_outputs_have_the_size_of_their_axes(name: str, options: dict[str, Any]) -> None:
    graph = model(name, **options)
    for operator, made in zip(graph.operators, graph.outputs, strict=True):
        assert len(made) == (3 if operator.kind == "unstack" else 1)
        for tensor in (graph.tensors[t] for t in made):
            assert tensor.forward_bytes_per_sample == 4 * prod(
                operator.dims[a] for a in operator.axes[tensor.name][1:]
            )
            learned = operator.path != "mask"
            assert tensor.gradient_bytes_per_sample == (tensor.forward_bytes_per_sample if learned else 0)


def test_resnet50_is_built_as_torchvision_builds_it() -> None:
    graph = model("resnet50")
    kinds = Counter(operator.kind for operator in graph.operators)
    assert kinds == {
        "conv2d": 53,
        "batch_norm": 53,
        "relu": 49,
        "add": 16,
        "max_pool": 1,
        "average_pool": 1,
        "flatten": 1,
        "linear": 1,
    }
    names = [operator.name for operator in graph.operators]
    assert {"conv1", "layer1.0.downsample.0", "layer4.2.conv3", "fc"} <= set(names)
    assert [operator.layer for operator in graph.operators][-1] == 17


@pytest.mark.parametrize(("image_size", "side"), [(224, 7), (1000, 32), (299, 10), (1, 1)])
def test_resnet50_halves_the_image_five_times(image_size: int, side: int) -> None:
    graph = model("resnet50", image_size=image_size)
    pool = graph.operators[graph.index["avgpool"]]
    assert (pool.dims["kernel_height"], pool.dims["kernel_width"]) == (side, side)


def test_inception_v3_halves_its_images_as_printed() -> None:
    """Szegedy et al. 2016, table 1: 35 x 35 x 288, 17 x 17 x 768, 8 x 8 x 2048."""
    graph = model("inception_v3")
    shapes = {
        name: [
            graph.operators[graph.index[f"Mixed_{name}.concat"]].dims[d] for d in ("channels", "height", "width")
        ]
        for name in ("5d", "6e", "7c")
    }
    assert shapes == {"5d": [288, 35, 35], "6e": [768, 17, 17], "7c": [2048, 8, 8]}


def test_densenet121_has_the_channels_of_its_table() -> None:
    """Huang et al. 2017, table 1: sides 56, 28, 14, 7; 64 channels grow by 32 a layer and are halved between."""
    graph = model("densenet121")
    ends = [graph.operators[graph.index[f"block{b}.layer{n}.concat"]] for b, n in enumerate((6, 12, 24, 16), 1)]
    assert [(op.dims["channels"], op.dims["height"]) for op in ends] == [
        (256, 56),
        (512, 28),
        (1024, 14),
        (1024, 7),
    ]


def test_vgg16_is_a_chain_that_takes_any_image() -> None:
    graph = model("vgg16", image_size=1000)
    assert all(len(after) <= 1 for after in graph.successors)
    assert graph.operators[graph.index["avgpool"]].dims["kernel_height"] == 5  # 31 pixels in 7 windows
    assert graph.operators[graph.index["classifier.0"]].dims["in_features"] == 512 * 7 * 7


def test_joined_channels_are_the_sum_of_the_parts() -> None:
    for name in ("inception_v3", "densenet121"):
        graph = model(name)
        for position, operator in enumerate(graph.operators):
            if operator.kind == "concat":
                parts = sum(graph.tensors[graph.tensor_index[t]].forward_bytes_per_sample for t in operator.inputs)
                assert parts == graph.tensors[graph.outputs[position][0]].forward_bytes_per_sample


def test_only_the_image_carries_no_gradient() -> None:
    graph = model("resnet50")
    assert [t.name for t in graph.tensors if t.gradient_bytes_per_sample == 0] == ["image"]


def test_transformer_is_a_chain() -> None:
    graph = model("transformer")
    assert all(len(after) <= 1 for after in graph.successors)
    assert all(len(before) <= 1 for before in graph.predecessors)


def test_branches_are_equal_and_meet_in_the_concat() -> None:
    graph = model("mmt", branches=4, layers=2)
    assert graph.predecessors[graph.index["concat"]] == tuple(
        graph.index[f"branches.{branch}.layers.1.linear2"] for branch in range(4)
    )
    branches = [
        [(op.kind, op.dims) for op in graph.operators if op.name.startswith(f"branches.{branch}.")]
        for branch in range(4)
    ]
    assert branches == [branches[0]] * 4
    assert len({op.layer for op in graph.operators if op.layer is not None}) == 8


def test_residual_connections_skip_the_attention_and_the_feed_forward_part() -> None:
    graph = model("transformer", layers=1, residual=True)
    readers = {
        tensor.name: [graph.operators[reader].name for reader in graph.consumers[position]]
        for position, tensor in enumerate(graph.tensors)
    }
    assert readers["tokens"] == ["layers.0.norm1", "layers.0.add1"]
    assert readers["layers.0.add1.out"] == ["layers.0.norm2", "layers.0.add2"]


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("resnet50", {"image_size": 0}, "image_size is 0"),
        ("resnet50", {"classes": -1}, "classes is -1"),
        ("vgg16", {"image_size": 31}, "image_size is 31, it must be at least 32"),
        ("densenet121", {"image_size": 31}, "at least 32"),
        ("inception_v3", {"image_size": 74}, "at least 75"),
        ("inception_v3", {"image_size": 200, "auxiliary": True}, "at least"),
        ("transformer", {"layers": 0}, "layers is 0"),
        ("transformer", {"heads": 3}, "heads=3 does not divide hidden=1024"),
        ("mmt", {"branches": 0}, "branches is 0"),
        ("dlrm", {"dense": 0, "sparse": 0}, "no branch"),
        ("dlrm", {"dense": -1}, "dense is -1"),
        ("candle-uno", {"branches": 0}, "branches is 0"),
        ("clip", {"patch": 30}, "patch=30 does not divide image_size=224"),
        ("bert", {"hidden": 100}, "the width of a head, 64, does not divide hidden=100"),
        ("bert", {"heads": 7}, "heads=7 does not divide hidden=768"),
        ("bert", {"sequence": 513}, "there are vectors for 512 positions"),
        ("bert", {"ffn": -1}, "ffn is -1"),
        ("resnet152", {"width": 0}, "width is 0"),
        ("clip", {"text_heads": 7}, "text_heads=7 does not divide text_width=512"),
    ],
)
def test_impossible_options_are_refused(name: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidValue, match=word):
        DESCRIPTORS[name].options(**options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vgg16", {"image_size": 32}),
        ("densenet121", {"image_size": 32}),
        ("inception_v3", {"image_size": 75}),
        ("inception_v3", {"image_size": 299, "auxiliary": True}),
    ],
)
def test_the_smallest_image_leaves_a_pixel_everywhere(name: str, options: dict[str, Any]) -> None:
    """Dims below one would be refused."""
    assert all(size >= 1 for operator in model(name, **options).operators for size in operator.dims.values())


def test_dlrm_looks_entries_up_and_joins_them_with_the_dense_branches() -> None:
    graph = model("dlrm", dense=2, sparse=1, layers=2, top=1)
    kinds = [operator.kind for operator in graph.operators]
    assert kinds == ["linear"] * 4 + ["embedding", "concat", "linear"]
    interaction = graph.operators[graph.index["interaction"]]
    assert [interaction.dims[f"features{part}"] for part in range(3)] == [4096, 4096, 6400]
    assert len({operator.layer for operator in graph.operators if operator.kind == "linear"}) == 5
    ids = graph.tensors[graph.tensor_index["sparse.0.ids"]]
    assert (ids.forward_bytes_per_sample, ids.gradient_bytes_per_sample) == (400, 0)


def test_clip_has_two_branches_of_unlike_size() -> None:
    graph = model("clip")
    assert graph.predecessors[graph.index["similarity"]] == (
        graph.index["visual.projection"],
        graph.index["text.projection"],
    )
    tokens = graph.tensors[graph.tensor_index["visual.positions.out"]]
    assert tokens.forward_bytes_per_sample == 4 * 50 * 768


def test_pase_models_have_the_vertices_of_the_prototype() -> None:
    transformer = model("pase-transformer", layers=2)
    assert Counter(op.kind for op in transformer.operators) == {
        "embedding": 2, "add": 2 + 2 * 2 + 3 * 2, "layer_norm": 10, "matmul": 6 * 4, "linear": 4 * 2 + 1,
        "unstack": 6, "softmax": 6, "stack": 2, "cross_entropy": 1,
    }  # fmt: skip
    across = transformer.operators[transformer.index["decoder.1.across.stack"]]
    encoded = transformer.index["encoder.1.norm"]
    assert transformer.index["decoder.0.across.stack"] in transformer.successors[encoded]
    assert across.dims["parts"] == 3
    inception, folded = model("inception_v3"), model("pase-inception_v3")
    kinds = Counter(op.kind for op in inception.operators) - Counter(op.kind for op in folded.operators)
    assert set(kinds) == {"relu", "dropout", "flatten"}
    assert sum(kinds.values()) == len(inception.operators) - len(folded.operators) + 1
    assert sum(inception.parameter_bytes.values()) == sum(folded.parameter_bytes.values())
    lstm = model("pase-rnnlm", units=16, layers=3).operators[1]
    assert len(lstm.parameters) == 8
