"""What the forward keeps for the backward."""

import pytest

from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from tests.analytic.profiling import costs_of, run
from tests.models.zoo import model

TOKENS = 4 * 256 * 1024


def test_transformer_layer_keeps_fourteen_activations_of_its_width() -> None:
    """Attention: input, query, key, value, context and 16 x 256 x 256 probabilities (4 of them); then 1 and 4."""
    made = run(model("transformer", layers=1))
    kept = [costs.saved_bytes_per_sample / TOKENS for costs in made.costs[0].operators]
    assert kept == [9, 1, 4]


def test_multi_modal_transformer_keeps_470_megabytes() -> None:
    made = run(model("mmt"))
    assert sum(costs.saved_bytes_per_sample for costs in made.costs[0].operators) == 32 * 14 * TOKENS


def test_resnet_layer_keeps_each_tensor_once() -> None:
    """Of a block: its input once (two convolutions read it), the input of every other convolution and norm."""
    made = run(model("resnet50", image_size=64))
    pixel = 4 * 16 * 16
    block = {
        c.operator: c.saved_bytes_per_sample / pixel for c in made.costs[0].operators if "layer1.0" in c.operator
    }
    assert block == {
        "layer1.0.conv1": 64,
        "layer1.0.bn1": 64,
        "layer1.0.relu1": 0,
        "layer1.0.conv2": 64,
        "layer1.0.bn2": 64,
        "layer1.0.relu2": 0,
        "layer1.0.conv3": 64,
        "layer1.0.bn3": 256,
        "layer1.0.downsample.0": 0,
        "layer1.0.downsample.1": 256,
        "layer1.0.add": 0,
        "layer1.0.relu3": 0,
    }


def test_relu_keeps_its_output_where_no_reader_does() -> None:
    made = run(model("resnet50", image_size=64))
    assert costs_of(made, "layer4.2.relu3").saved_bytes_per_sample == 4 * 2048 * 2 * 2


def test_max_pool_keeps_its_input_and_an_index_for_each_output() -> None:
    made = run(model("resnet50", image_size=64))
    assert costs_of(made, "maxpool").saved_bytes_per_sample == 4 * 64 * 32 * 32 + 8 * 64 * 16 * 16


def test_layer_norm_keeps_two_statistics_a_token() -> None:
    made = run(model("transformer", layers=1, residual=True))
    assert costs_of(made, "layers.0.norm1").saved_bytes_per_sample == TOKENS + 2 * 4 * 256


def test_a_tensor_goes_to_the_first_reader_in_topological_order() -> None:
    """Listed last, reads first: the listing does not decide."""
    dims = {"in_features": 3, "out_features": 3}
    graph = OperatorGraph(
        name="fork",
        operators=(
            Operator(name="late", kind="linear", dims=dims, inputs=("x", "y")),
            Operator(name="early", kind="linear", dims=dims, inputs=("x",)),
        ),
        tensors=(
            Tensor(name="x", forward_bytes_per_sample=12.0, gradient_bytes_per_sample=0.0),
            Tensor(name="y", producer="early", forward_bytes_per_sample=20.0, gradient_bytes_per_sample=20.0),
        ),
    )
    kept = {costs.operator: costs.saved_bytes_per_sample for costs in run(graph).costs[0].operators}
    assert kept == {"late": 20.0, "early": 12.0}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_activations_follow_the_precision(precision: str) -> None:
    made = run(model("transformer", layers=1), precision=precision)  # type: ignore[arg-type]
    share = {"fp32": 1.0, "fp16": 0.5}[precision]
    assert costs_of(made, "layers.0.attention").saved_bytes_per_sample == 9 * TOKENS * share


def test_dropout_keeps_a_byte_a_feature_and_the_relu_before_it_its_output() -> None:
    made = run(model("vgg16"))
    kept = {name: costs_of(made, name).saved_bytes_per_sample for name in ("classifier.1", "classifier.2")}
    assert kept == {"classifier.1": 4 * 4096, "classifier.2": 4096}
