"""Layers that recompute, as the profiler prices them: table 2 of Korthikanti et al. 2022, and kernels."""

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.transformer import LAYER, layer_shape
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from tests.analytic.profiling import COMPUTE_BOUND, NEARLY, V100, costs_of
from tests.analytic.test_training import V2, layer, seconds, training
from tests.models.zoo import model

SEQUENCE, HIDDEN, HEADS = 2048, 4096, 32
SH = SEQUENCE * HIDDEN
SCORES = HEADS * SEQUENCE**2
STATISTICS = 4 * HEADS * SEQUENCE
"""Row sums of the softmax, which their tables leave out."""


@pytest.mark.parametrize("ways", [1, 2, 4, 8])
@pytest.mark.parametrize("split", [False, True])
def test_bytes_of_a_layer(ways: int, split: bool) -> None:
    """Table 2, b = 1: nothing 34 + 5 a s / h, selective 34, full 2; with tensor parallelism alone 10 + 24 / t in
    place of 34, and 2 on each device; with sequence parallelism all of it over t.
    """
    made = training(replace(V2, sequence_parallel=split)).costs(
        layer(HIDDEN, HEADS, SEQUENCE), 0, (2, 4, 8), 0, selective=True
    )
    linear = SH * (34 / ways if split else 10 + 24 / ways)
    plain = linear + 5 * SCORES / ways
    prefix = "" if ways == 1 else f"tp{ways}-sp" if split else f"tp{ways}"
    if ways == 1:
        assert made.saved_bytes_per_sample == pytest.approx(plain)
    else:
        assert made.alternative(prefix).saved_bytes_per_sample == pytest.approx(plain)
    full = made.alternative(f"{prefix}-recompute".lstrip("-"))
    assert full.saved_bytes_per_sample == pytest.approx(2 * SH / (ways if split else 1))
    assert full.transient_bytes_per_sample == pytest.approx(plain - full.saved_bytes_per_sample)
    selective = made.alternative(f"{prefix}-selective".lstrip("-"))
    assert selective.saved_bytes_per_sample == pytest.approx(linear + STATISTICS / ways)
    assert selective.transient_bytes_per_sample == pytest.approx((5 * SCORES - STATISTICS) / ways)
    assert (full.selective, selective.selective, selective.recompute) == (False, True, True)


@pytest.mark.parametrize("ways", [1, 4])
def test_selective_runs_what_the_profile_of_selective_attention_runs(ways: int) -> None:
    """The alternative of a profile of unfused attention is the plain way of one of selective attention."""
    operator, prefix = layer(HIDDEN, HEADS, SEQUENCE), "" if ways == 1 else f"tp{ways}"
    unfused = training(V2).costs(operator, 0, (4,), 0, selective=True)
    way = unfused.alternative(f"{prefix}-selective".lstrip("-"))
    assert (way.forward_s[0], way.backward_s[0]) == seconds(training(V2, "selective"), operator, prefix)
    again = training(V2, "selective").costs(operator, 0, (4,), 0, selective=True)
    same = again.alternative(f"{prefix}-selective".lstrip("-"))
    assert (same.forward_s, same.backward_s) == (way.forward_s, way.backward_s)
    assert same.transient_bytes_per_sample == 0


def test_fused_attention_wins_nothing_by_running_again() -> None:
    made = training(V2, "flash").costs(layer(HIDDEN, HEADS, SEQUENCE), 0, (), 0, selective=True)
    way = made.alternative("selective")
    assert (way.saved_bytes_per_sample, way.transient_bytes_per_sample) == (made.saved_bytes_per_sample, 0.0)
    assert way.backward_s > made.backward_s


def offered(selective: bool, **options: object) -> dict[str, tuple[str, ...]]:
    """The alternatives that recompute, of the first layer and the head, without a framework."""
    request = ProfileRequest(devices=(V100,), micro_batches=(1,), selective=selective)
    made = profile(
        model("llm", layers=2, hidden=64, heads=4, ffn=256, vocab=1000, sequence=16),
        Context(options=AnalyticOptions(max_tensor_parallel=2, **options), request=request),  # type: ignore[arg-type]
    )
    return {
        name: tuple(each.id for each in costs_of(made, name).alternatives if each.recompute)
        for name in ("layers.0", "head")
    }


def test_the_profile_has_what_is_asked_for_and_else_what_it_had() -> None:
    full = ("recompute", "tp2-sp-recompute")
    assert offered(False) == {"layers.0": full, "head": full}
    assert offered(False, recompute=False) == {"layers.0": (), "head": ()}
    assert offered(True, recompute=False) == {"layers.0": ("selective", "tp2-sp-selective"), "head": ()}
    assert offered(True) == {
        "layers.0": ("recompute", "selective", "tp2-sp-recompute", "tp2-sp-selective"),
        "head": full,
    }


def test_flop_of_the_core_run_again() -> None:
    """Where only FLOP count, what is added to the backward is the core's share of the forward's."""
    graph = model("llm", layers=1, hidden=1024, heads=16, ffn=4096, vocab=1000, sequence=1024)
    request = ProfileRequest(devices=(COMPUTE_BOUND,), micro_batches=(8,), selective=True)
    options = AnalyticOptions(max_tensor_parallel=1, launch_s=0.0, r_half=0.0)
    costs = costs_of(profile(graph, Context(options=options, request=request)), "layers.0")
    shape = layer_shape(next(each for each in graph.operators if each.kind == LAYER))
    whole = shape.core_flops + sum(product.flops for product in shape.products)
    added = costs.alternative("selective").backward_s[0] - costs.backward_s[0]
    assert added / costs.forward_s[0] == pytest.approx(shape.core_flops / whole, rel=10 * NEARLY)
