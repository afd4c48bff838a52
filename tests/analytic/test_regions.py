"""Regions of tensor parallelism in models spelled out task by task."""

from collections import Counter

import pytest

from pipebench_analytic.alternatives import regions
from pipebench_models.bert import elementwise, weights
from pipebench_models.graph_builder import GraphBuilder
from tests.analytic.profiling import run
from tests.models.zoo import DESCRIPTORS, model

LAYERS = 2


def test_a_bert_layer_has_attention_and_feed_forward_regions() -> None:
    graph = model("bert", layers=LAYERS, hidden=256, sequence=32)
    found = regions(graph)
    names = [operator.name for operator in graph.operators]
    columns = {
        names[op].removeprefix("encoder.0."): count for op, count in found.columns.items() if ".0." in names[op]
    }
    assert columns == {
        "attention.query.matmul": 3,
        "attention.key.matmul": 3,
        "attention.value.matmul": 3,
        "intermediate.matmul": 1,
    }
    rows = sorted(names[op] for op in found.rows)
    assert rows == sorted(f"encoder.{i}.{p}.matmul" for i in range(LAYERS) for p in ("attention.output", "output"))
    kinds = Counter(graph.operators[op].kind for op in found.within)
    assert kinds["softmax"] == LAYERS
    assert "mean" not in kinds
    # Everything of a layer but the four rows and columns, the residual paths and the two layer norms.
    assert len(found.within) == LAYERS * (56 - 6 - 2 * (1 + 1 + 1 + 10))
    # Four heads of 64 in attention, 1024 features inside the feed-forward part.
    assert set(found.parts.values()) == {4, 1024}


@pytest.mark.parametrize("name", sorted(set(DESCRIPTORS) - {"bert"}))
def test_models_of_whole_modules_have_none(name: str) -> None:
    assert not regions(model(name)).parts


def test_megatron_s_bytes() -> None:
    """Two all-reduces of an activation a layer forward and two back (Megatron-LM, section 3)."""
    graph = model("bert", layers=1, hidden=256, sequence=32)
    profile = run(graph)
    activation = 4 * 32 * 256
    total = 0.0
    for operator, costs in zip(graph.operators, profile.costs[0].operators, strict=True):
        for alternative in costs.alternatives:
            if alternative.id == "tp4" and operator.name.startswith("encoder"):
                total += 2 * alternative.collective_bytes  # the mean of both directions
                assert alternative.forward_s[-1] <= costs.forward_s[-1] or alternative.collective_bytes
    assert total == pytest.approx(4 * activation)
    softmax = profile.costs[0].operators[graph.index["encoder.0.attention.softmax"]]
    assert softmax.alternative("tp4").saved_bytes_per_sample == softmax.saved_bytes_per_sample / 4


def test_degrees_divide_the_heads() -> None:
    """Twelve heads: two and four ways, not eight, although the features would divide."""
    graph = model("bert", layers=1, hidden=768, sequence=32)
    costs = run(graph).costs[0].operators[graph.index["encoder.0.attention.query.matmul"]]
    assert [a.id for a in costs.alternatives if a.tensor_parallel > 1] == ["tp2", "tp4"]


def test_a_residual_connection_needs_whole_tensors() -> None:
    """linear, + its own input, linear: the sum is of whole activations, so nothing stays split."""
    graph = GraphBuilder("residual")
    x = graph.input("x", 8, 16, gradient=True)
    y = weights(graph, "first", x, 16)
    y = elementwise(graph, "sum", "add", y, x, axes=("sequence", "features"))
    weights(graph, "second", y, 16)
    assert not regions(graph.graph()).parts


def test_a_scaled_linear_stays_split() -> None:
    graph = GraphBuilder("scaled")
    x = graph.input("x", 8, 16, gradient=True)
    y = elementwise(graph, "twice", "scale", weights(graph, "first", x, 32), axes=("sequence", "features"))
    weights(graph, "second", y, 16)
    assert regions(graph.graph()).parts == {0: 32, 1: 32, 2: 32}
