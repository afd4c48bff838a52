"""The oracles of the chain algorithms hold in worlds with another cost model."""

from collections.abc import Callable

import pytest

from tests.algorithms import (
    test_chain,
    test_contiguous,
    test_contiguous_bound,
    test_grouped,
    test_one_f_one_b_star,
)
from tests.altered import EACH_WORLD, altered
from tests.plugins.madpipe import test_stage_table

ORACLES: list[Callable[[], None]] = [
    test_chain.test_stages_cuts_and_memory_equal_the_cost_model,
    test_stage_table.test_bytes_and_times_of_every_stage,
    test_contiguous.test_shared_weights_levels_recomputation_and_pinned_degree,
    test_contiguous_bound.test_no_chain_is_simulated_below_its_bound,
    test_contiguous_bound.test_no_graph_is_simulated_below_its_bound,
    test_contiguous_bound.test_no_other_contiguous_plan_is_below_it_either,
    test_contiguous_bound.test_both_ways_admits_whatever_1f1b_star_admits_and_more_time_helps,
    test_one_f_one_b_star.test_schedules_of_cut_graphs_are_accepted,
    test_one_f_one_b_star.test_with_ample_memory_the_longest_item_is_the_period,
    test_grouped.test_times_messages_and_weights_are_equal_and_memory_is_no_less,
]


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("holds", ORACLES, ids=lambda oracle: oracle.__name__)
def test_holds(holds: Callable[[], None], world: str) -> None:
    with altered(world, state_bytes=11, live_bytes=3, update_ns=5):
        holds()
