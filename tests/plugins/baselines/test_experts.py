"""Planners that know ranks that share out experts: their plans are valid, fit, and are not below the bounds."""

from typing import Any

import pytest

from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Pins
from tests.language_models import TINY, problem
from tests.nightly import mostly_at_night
from tests.plugins.running import services
from tests.plugins.sound import sound_plan

ROUTED: dict[str, Any] = TINY | {"layers": 4, "vocab": 2000, "architecture": "mixtral", "experts": 8, "active": 2}


@pytest.mark.parametrize("ranks", mostly_at_night([2, 4, 8], [4]))
@pytest.mark.parametrize(
    ("planner", "pins"),
    [
        ("data-parallel", Pins()),
        ("tensor-parallel", Pins()),
        ("layout", Pins()),
        ("uniform", Pins(data_parallel=4, tensor_parallel=2, pipeline=1)),
        ("local-search", Pins()),
    ],
)
def test_plans_are_valid_and_not_below_the_bounds(planner: str, pins: Pins, ranks: int) -> None:
    given = problem(8, 16, pins, "zero1", expert_parallel=ranks, **ROUTED)
    sound_plan(planner, given)


@pytest.mark.parametrize("planner", ["data-parallel", "tensor-parallel", "layout", "uniform"])
def test_where_no_stage_has_as_many_ranks_they_say_so(planner: str) -> None:
    """Three devices; two ranks would share out the experts of a stage of one or three."""
    pins = Pins(data_parallel=3, tensor_parallel=1)
    given = problem(3, 12, pins, expert_parallel=2, **ROUTED)
    with pytest.raises((InfeasibleProblem, UnsupportedProblem)) as refused:
        services().plan(planner, given)
    assert planner == "tensor-parallel" or "2 ranks" in refused.value.message


def test_layout_estimates_the_state_as_the_cost_model_counts_it() -> None:
    """Of a stage that holds everything, under each sharding: what shapes are cut by is what is checked."""
    for ranks, tensor in ((4, 1), (4, 2), (8, 2)):
        given = problem(8, 16, Pins(tensor_parallel=tensor, pipeline=1), "zero1", expert_parallel=ranks, **ROUTED)
        plan = services().plan("layout", given).plan
        (stage,) = plan.stages
        model = CostModel(given)
        dense, experts = model._weights(stage)
        alike = stage.data_parallel * tensor // ranks
        each = model.formula.state_bytes
        held = each(dense - experts, stage.data_parallel) + each(experts, alike)
        assert model.stage_memory(plan, 0, []).held == held


def test_others_are_not_asked() -> None:
    given = problem(8, 16, expert_parallel=4, **ROUTED)
    with pytest.raises(UnsupportedProblem, match="graphpipe does not plan stages whose ranks share out experts"):
        services().plan("graphpipe", given)
