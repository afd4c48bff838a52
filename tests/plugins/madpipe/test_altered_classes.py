"""MadPipe's oracles hold in worlds with another cost model."""

from collections.abc import Callable

import pytest

from tests.altered import EACH_WORLD, altered
from tests.plugins.madpipe import (
    test_class_bound,
    test_labels,
    test_least_memory,
    test_paper,
    test_planner,
    test_schedulers,
)

ORACLES: list[Callable[[], None]] = [
    test_planner.test_never_worse_than_contiguous_exact,
    test_planner.test_between_its_bound_and_above_the_optimum_of_the_class,
    test_planner.test_graphs_shared_weights_workspace_and_recomputation,
    test_class_bound.test_no_chain_is_simulated_below_it,
    test_class_bound.test_no_graph_is_simulated_below_it,
    test_class_bound.test_no_plan_of_the_class_is_below_it,
    test_labels.test_what_is_reached_is_what_the_estimate_admits,
    test_labels.test_estimates_are_ordered_and_the_last_bounds_the_class,
    test_labels.test_monotone_in_the_period,
    test_least_memory.test_a_plan_exists_from_the_least_memory_on,
    test_paper.test_a_grid_of_every_value_meets_what_labels_meet,
    test_paper.test_whatever_is_planned_is_valid,
    test_schedulers.test_branch_and_bound_equals_the_ilp,
    test_schedulers.test_schedules_are_valid_and_run_at_their_period,
    test_schedulers.test_stages_of_their_own_run_as_under_1f1b_star,
    test_schedulers.test_the_pattern_of_an_allocation_is_that_of_its_plan,
]


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize("holds", ORACLES, ids=lambda oracle: oracle.__name__)
def test_holds(holds: Callable[[], None], world: str) -> None:
    with altered(world, state_bytes=11, live_bytes=3, update_ns=5):
        holds()
