"""Planners where ranks share out sequences: valid plans that fit and are not below the bounds, or a refusal."""

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import OptimizerSharding, Pins, Problem, RegimeMode
from pipebench.hooks.manager import Host
from tests.language_models import TINY, problem
from tests.plugins.running import services
from tests.plugins.sound import sound_plan

LONG: dict[str, Any] = TINY | {"layers": 4, "vocab": 2000, "sequence": 512, "architecture": "llama"}
PLANNERS = {name: found.component.capabilities for name, found in Host().slot("planners").items()}
ABLE = sorted(name for name, able in PLANNERS.items() if able.context_parallel)


@cache
def given(sharding: OptimizerSharding, mode: RegimeMode) -> Problem:
    """Eight devices of two ranks."""
    made = problem(16, 16, Pins(), sharding, context_parallel=2, **LONG)
    return replace(made, regime=replace(made.regime, mode=mode))


def test_those_that_count_replicas_by_the_formulas_are_asked() -> None:
    assert {"layout", "uniform", "local-search", "pipedream", "graphpipe", "rannc", "piper"} <= {*ABLE}
    assert not {"madpipe", "contiguous-exact", "tarnawski", "pase"} & {*ABLE}


@pytest.mark.parametrize("sharding", ["zero1", pytest.param("none", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("planner", ABLE)
def test_plans_are_valid_and_not_below_the_bounds(planner: str, sharding: OptimizerSharding) -> None:
    sound_plan(planner, given(sharding, PLANNERS[planner].regimes[0]))


@pytest.mark.parametrize(
    "planner", ["data-parallel", "layout", pytest.param("local-search", marks=pytest.mark.nightly)]
)
def test_ranks_share_out_experts_besides(planner: str) -> None:
    """Eight ranks share out experts, and two each sequence: four devices of two, or eight, are a stage."""
    routed = LONG | {"architecture": "mixtral", "experts": 8, "active": 2}
    made = problem(16, 16, Pins(), "zero1", expert_parallel=8, context_parallel=2, **routed)
    plan = sound_plan(planner, made)
    assert all(stage.data_parallel * stage.tensor_parallel % 4 == 0 for stage in plan.stages)


def test_others_are_not_asked() -> None:
    with pytest.raises(UnsupportedProblem, match="madpipe does not plan stages whose ranks share out sequences"):
        services().plan("madpipe", given("none", "async"))
