"""Attention whose queries see some keys, latent attention, experts that all tokens pass: shapes by hand."""

from typing import Any

import pytest

from pipebench.costs.shapes.attention import Latent, seen_pairs
from pipebench.costs.shapes.kept import saved_bytes
from pipebench.costs.shapes.transformer import LayerShape, layer_shape
from tests.models.zoo import model

S, H, HEADS = 64, 256, 8
QUERY_RANK, KEY_RANK, PLAIN, ROTATED, VALUE = 96, 48, 32, 16, 24
HEAD = PLAIN + ROTATED
LATENT = Latent(query_rank=QUERY_RANK, key_rank=KEY_RANK, rotated=ROTATED, value=VALUE)
FFN, SHARED, EXPERTS, ACTIVE = 80, 112, 16, 4


def shape(**fields: Any) -> LayerShape:
    usual: dict[str, Any] = {"sequence": S, "hidden": H, "heads": HEADS, "kv_heads": HEADS, "head": HEAD}
    return LayerShape(**usual | {"ffn": FFN, "branches": 2} | fields)


@pytest.mark.parametrize(
    ("sequence", "window", "chunk"),
    [
        (7, 3, 0),
        (64, 1, 0),
        (64, 63, 0),
        (64, 64, 0),
        (64, 99, 0),
        (64, 0, 0),
        (64, 0, 16),
        (70, 0, 16),
        (9, 0, 32),
    ],
)
def test_pairs_are_those_of_the_mask(sequence: int, window: int, chunk: int) -> None:
    """All that the mask lets through; a token and itself are half a pair, so that all of s tokens have s^2 / 2."""
    seen = sum(
        key <= query
        and query - key < (window or sequence)
        and query // (chunk or sequence) == key // (chunk or sequence)
        for query in range(sequence)
        for key in range(sequence)
    )
    assert seen_pairs(sequence, window, chunk) == seen - sequence / 2


def test_a_window_cuts_the_core_alone() -> None:
    whole, band = shape(), shape(window=16)
    assert whole.core_flops == 4 * (S**2 / 2) * HEADS * HEAD
    assert band.core_flops == 4 * (S * 16 - 16 * 15 / 2 - S / 2) * HEADS * HEAD
    assert (band.products, band.weights(), saved_bytes(band, 2)) == (
        whole.products,
        whole.weights(),
        saved_bytes(whole, 2),
    )


def test_products_of_latent_attention() -> None:
    """DeepSeek-V2, equations 9 to 13 and 37 to 47: two projections down, two up, and the result's."""
    made = {each.name: (each.inner, each.outer, each.split) for each in shape(latent=LATENT).products[:5]}
    assert made == {
        "query_down": (H, QUERY_RANK, False),
        "query_up": (QUERY_RANK, HEADS * HEAD, True),
        "key_down": (H, KEY_RANK + ROTATED, False),
        "key_up": (KEY_RANK, HEADS * (PLAIN + VALUE), True),
        "out": (HEADS * VALUE, H, True),
    }
    full_rank = shape(latent=Latent(query_rank=0, key_rank=KEY_RANK, rotated=ROTATED, value=VALUE))
    assert [each.name for each in full_rank.products[:3]] == ["query", "key_down", "key_up"]
    assert full_rank.products[0].weights == H * HEADS * HEAD


def test_flops_of_latent_attention() -> None:
    """The core's first product is over whole queries and keys, its second over values."""
    attention = H * QUERY_RANK + QUERY_RANK * HEADS * HEAD + H * (KEY_RANK + ROTATED)
    attention += KEY_RANK * HEADS * (PLAIN + VALUE) + HEADS * VALUE * H
    made = shape(latent=LATENT)
    assert sum(each.flops for each in made.products) == 2 * S * (attention + 3 * H * FFN)
    assert made.core_flops == 2 * (S**2 / 2) * HEADS * (HEAD + VALUE)


@pytest.mark.parametrize("ways", [1, 2, 4])
def test_weights_of_latent_attention_on_one_of_several_devices(ways: int) -> None:
    """Projections down and norms are whole on each (Megatron-LM, MLASelfAttention)."""
    whole = H * (QUERY_RANK + KEY_RANK + ROTATED) + QUERY_RANK + KEY_RANK + 2 * H
    split = HEADS * (QUERY_RANK * HEAD + KEY_RANK * (PLAIN + VALUE) + VALUE * H) + 3 * H * FFN
    assert shape(latent=LATENT).weights(ways) == split // ways + whole


def test_what_latent_attention_keeps() -> None:
    """Of a token in 16 bits: four activations of the width, both sides of the norms of low rank, queries, keys,
    values and context, both branches and their product, and attention's row sums in fp32.
    """
    heads = HEADS * (HEAD + HEAD + VALUE + VALUE)
    kept = 2 * (4 * H + 2 * (QUERY_RANK + KEY_RANK) + heads + 3 * FFN) + 4 * HEADS
    assert saved_bytes(shape(latent=LATENT), 2) == S * kept
    assert saved_bytes(shape(latent=LATENT), 2, 4) == S * kept / 4


def test_what_an_expert_that_all_tokens_pass_keeps_and_holds() -> None:
    routed = {"experts": EXPERTS, "active": ACTIVE}
    without, beside = shape(**routed), shape(**routed, shared_ffn=SHARED)
    assert beside.weights() - without.weights() == 3 * H * SHARED
    assert saved_bytes(beside, 2) - saved_bytes(without, 2) == S * 2 * (H + 3 * SHARED)
    shared_out = saved_bytes(beside, 2, dispatches=True) - saved_bytes(without, 2, dispatches=True)
    assert shared_out == S * 2 * 3 * SHARED  # the router keeps what it reads
    gated = shape(**routed, shared_ffn=SHARED, shared_gate=True)
    assert gated.weights() - beside.weights() == H
    assert saved_bytes(gated, 2) - saved_bytes(beside, 2) == S * 2 * H


@pytest.mark.parametrize(("ways", "ranks"), [(1, 4), (2, 4), (4, 16)])
def test_ranks_share_out_the_routed_experts_alone(ways: int, ranks: int) -> None:
    """The expert that all tokens pass is split by tensor parallelism, as attention is."""
    made = shape(
        experts=EXPERTS,
        active=ACTIVE,
        shared_ffn=SHARED,
        shared_gate=True,
        router_bias=True,
        ffn_bias=True,
        sinks=True,
    )
    experts = EXPERTS * (3 * H * FFN + 2 * FFN + H)
    split = 4 * HEADS * HEAD * H + 3 * H * SHARED + HEADS
    whole = 2 * H + H * EXPERTS + EXPERTS + H
    assert made.expert_weights == experts
    assert made.weights(ways, ranks) == split // ways + whole + experts // ranks


def test_what_tensor_parallel_ranks_send() -> None:
    """Latent attention gathers what is of low rank, half of an all-reduce, and scatters results, another half."""
    assert shape().crossings(shared=False) == (H, H)
    latent = (H + QUERY_RANK + KEY_RANK + ROTATED) / 2
    assert shape(latent=LATENT).crossings(shared=False) == (latent, H)
    assert shape(latent=LATENT, experts=EXPERTS).crossings(shared=True) == (latent,)
    assert shape(experts=EXPERTS, shared_ffn=SHARED).crossings(shared=True) == (H, H)
    assert shape(further=True).crossings(shared=False) == (H, H, H, H)  # and of its table and its first product


def test_layers_of_a_model_take_turns() -> None:
    made = model(
        "llm", architecture="mixtral", layers=7, hidden=H, heads=HEADS, head=HEAD, ffn=FFN, vocab=100, sequence=S,
        experts=EXPERTS, active=ACTIVE, routed="d2e5", dense_ffn=300, shared_ffn=SHARED, window=16, windowed="w2f",
    )  # fmt: skip
    shapes = [layer_shape(operator) for operator in made.operators[1:-2]]
    assert [each.window for each in shapes] == [16, 16, 0, 16, 16, 0, 16]
    assert [(each.experts, each.ffn, each.shared_ffn) for each in shapes] == [
        (1, 300, 0),
        (1, 300, 0),
        *[(EXPERTS, FFN, SHARED)] * 5,
    ]


def test_an_operator_says_what_its_shape_is() -> None:
    made = model(
        "llm", architecture="mixtral", layers=1, hidden=H, heads=HEADS, head=HEAD, ffn=FFN, vocab=100, sequence=S,
        experts=EXPERTS, active=ACTIVE, query_rank=QUERY_RANK, key_rank=KEY_RANK, rotated=ROTATED,
        value_head=VALUE,
    )  # fmt: skip
    assert layer_shape(made.operators[1]) == shape(latent=LATENT, experts=EXPERTS, active=ACTIVE)
