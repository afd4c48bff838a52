"""The baselines plan validly and choose the best of their plans in worlds with another cost model."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.altered import EACH_WORLD, altered
from tests.plugins.baselines import (
    test_contiguous_exact,
    test_data_parallel,
    test_hybrid,
    test_layout,
    test_uniform,
)

ORACLES: list[Callable[[], None]] = [
    test_contiguous_exact.test_whatever_is_planned_is_valid,
    partial(test_data_parallel.test_plans_are_valid_and_honour_pins, {}, "sync"),
    partial(test_data_parallel.test_plans_are_valid_and_honour_pins, {}, "async"),
    partial(test_hybrid.test_stages_have_as_many_layers_and_replicas, "pipedream-2bw", "async"),
    test_hybrid.test_gpipe_hybrid_is_the_best_of_all_its_plans,
    partial(test_uniform.test_stages_are_equal_valid_and_as_pinned, 3, {}, 3, "sync"),
    partial(test_uniform.test_stages_are_equal_valid_and_as_pinned, 3, {}, 3, "async"),
    partial(test_uniform.test_the_micro_batch_is_the_best_of_all, "sync"),
    partial(test_uniform.test_the_micro_batch_is_the_best_of_all, "async"),
]


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("holds", ORACLES)
def test_holds(holds: Callable[[], None], world: str) -> None:
    with altered(world, state_bytes=11, live_bytes=3, update_ns=5):
        holds()


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("pipeline", [2, 4])
def test_no_contiguous_cut_is_faster_than_layouts(pipeline: int, world: str) -> None:
    with altered(world):
        test_layout.test_no_contiguous_cut_of_layers_is_faster(pipeline)
