"""FLOP rules against counting the multiply-adds one by one."""

from itertools import product

import pytest

from pipebench.costs.shapes.flops import forward_flops, graph_flops
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator
from tests.models.zoo import model


def test_convolution_counts_every_multiply_add() -> None:
    dims = {"out_channels": 3, "height": 4, "width": 2, "in_channels": 5, "kernel_height": 3, "kernel_width": 1}
    counted = sum(2 for _ in product(*map(range, dims.values())))
    assert forward_flops(Operator(name="c", kind="conv2d", dims=dims)) == counted


def test_attention_is_its_matrix_products() -> None:
    sequence, keys, heads, head, hidden = 6, 5, 2, 3, 7
    inner = heads * head
    products = [
        (sequence, hidden, inner),  # query
        (keys, hidden, inner),  # key
        (keys, hidden, inner),  # value
        *[(sequence, head, keys)] * heads,  # scores
        *[(sequence, keys, head)] * heads,  # weighted sum of values
        (sequence, inner, hidden),  # output
    ]
    dims = {"sequence": sequence, "keys": keys, "heads": heads, "head": head}
    operator = Operator(name="a", kind="attention", dims={**dims, "in_features": hidden, "out_features": hidden})
    assert forward_flops(operator) == sum(2 * m * k * n for m, k, n in products)


def test_unknown_kind_is_named_with_the_nearest() -> None:
    with pytest.raises(PipebenchError, match=r"no FLOP rule for kind 'conv2'.*conv2d"):
        forward_flops(Operator(name="x", kind="conv2", dims={}))


def test_missing_dim_is_named() -> None:
    with pytest.raises(PipebenchError, match="'a' of kind 'attention' lacks the dim 'heads'"):
        forward_flops(Operator(name="a", kind="attention", dims={"sequence": 1}))


def test_graph_is_the_sum_of_its_operators() -> None:
    graph = model("resnet50", image_size=32)
    assert graph_flops(graph) == sum(map(forward_flops, graph.operators))
