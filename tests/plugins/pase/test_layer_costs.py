"""Layer costs of single operators by hand: r = 10 multiply-adds a word, A(w, q) = 2 (q - 1) w / q words."""

import pytest

from pipebench.domain.graph import OperatorGraph
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.operators import batch_norm, global_average_pool, layer_norm, max_pool
from pipebench_models.pase_models import lstm, named_cross_entropy, softmax
from pipebench_pase.paper_costs import CostMachine
from pipebench_pase.tables import Pricing

BATCH, R = 8, 10.0


def cost(graph: OperatorGraph, split: dict[str, int]) -> float:
    """Of the last operator, the others whole."""
    splits = {op.name: {} for op in graph.operators[:-1]} | {graph.operators[-1].name: split}
    tables = Pricing(graph, BATCH, CostMachine(1.0, R)).fixed_tables(splits)
    return float(tables.costs.vertices[-1][0])


def reduced(words: float, devices: int) -> float:
    return R * 2 * (devices - 1) * words / devices


def test_softmax_gathers_its_rows() -> None:
    graph = GraphBuilder("g")
    softmax(graph, "s", graph.input("x", 4, 6), ("sequence", "keys"))
    assert cost(graph.graph(), {}) == pytest.approx((4 + 6) * BATCH * 24)
    rows = BATCH * 4
    whole = (4 + 6) * BATCH * 24 / 2 + 2 * reduced(rows, 2) + reduced(rows * 6, 2)
    assert cost(graph.graph(), {"keys": 2}) == pytest.approx(whole)


def test_cross_entropy_exchanges_a_label_a_row() -> None:
    graph = GraphBuilder("g")
    named_cross_entropy(graph, "l", graph.input("x", 6))
    assert cost(graph.graph(), {"batch": 2}) == pytest.approx(4 * 4 * 6 + 2 * 4)
    assert cost(graph.graph(), {"classes": 3}) == pytest.approx(4 * 8 * 2 + 2 * 8 + 2 * R * 8)


def test_norms_reduce_along_their_axis_and_across_it() -> None:
    graph = GraphBuilder("g")
    layer_norm(graph, "n", graph.input("x", 4, 6))
    split = {"batch": 2, "features": 3}
    assert cost(graph.graph(), split) == pytest.approx(16 * 4 * 4 * 2 + 4 * reduced(16, 3) + 4 * reduced(2, 2))
    graph = GraphBuilder("g")
    batch_norm(graph, "n", graph.input("x", 3, 4, 4))
    split = {"batch": 4, "channels": 3}
    assert cost(graph.graph(), split) == pytest.approx(16 * 2 * 16 + 4 * reduced(16, 4) + 4 * reduced(2, 3))


def test_poolings_pay_for_the_rows_around_a_cut_image() -> None:
    graph = GraphBuilder("g")
    x = max_pool(graph, "before", graph.input("x", 2, 24, 24), kernel=2, stride=2)
    max_pool(graph, "p", x, kernel=3, stride=2)
    assert cost(graph.graph(), {"batch": 2}) == pytest.approx(4 * 2 * 25)
    # 12 rows and columns come in; half of the rows and 3 of the window.
    assert cost(graph.graph(), {"height": 5}) == pytest.approx(
        8 * 2 * 5 + R * 8 * 2 * ((12 / 5 + 3) * 12 - 12 / 5 * 12)
    )
    graph = GraphBuilder("g")
    global_average_pool(graph, "p", graph.input("x", 2, 4, 4))
    assert cost(graph.graph(), {"batch": 2}) == pytest.approx(0)
    assert cost(graph.graph(), {"kernel_height": 2}) == pytest.approx(reduced(8 * 2 * 4 * 2, 2))


def test_cells_hand_on_what_is_cut_otherwise() -> None:
    graph = GraphBuilder("g")
    lstm(graph, "l", graph.input("x", 3, 4), 2)
    m, n, k = 3 * BATCH, 4 * 4, 2 * 4
    assert cost(graph.graph(), {}) == pytest.approx(2 * (3 * m * n * k + 9 * m * n))
    cut = 2 * (3 * m * n / 2 * k + 9 * m * n / 2 + reduced(m * k, 2))
    # Each cell's output is in halves, its next step reads it whole: 2 layers x 3 steps.
    assert cost(graph.graph(), {"units": 2}) == pytest.approx(cut + 2 * 3 * R * (BATCH * 4 - BATCH * 2))
    assert cost(graph.graph(), {"layers": 2}) == pytest.approx(cost(graph.graph(), {}) / 2)
