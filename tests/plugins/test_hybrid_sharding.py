"""Planners where groups of ranks share out a copy each: whole groups, or a refusal."""

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.hooks.manager import Host
from tests.builders import chain_problem, cluster
from tests.language_models import TINY, problem
from tests.plugins.running import services
from tests.plugins.sound import sound_plan

MODEL: dict[str, Any] = TINY | {"layers": 4, "vocab": 2000, "architecture": "llama"}
PLANNERS = {name: found.component.capabilities for name, found in Host().slot("planners").items()}
ABLE = sorted(name for name, able in PLANNERS.items() if able.sharding_groups)
GROUP = 3


@cache
def given(mode: RegimeMode) -> Problem:
    """Eight devices: four or eight replicas, the usual ones, would make no whole groups of three."""
    made = problem(8, 24, Pins(), "zero1", **MODEL)
    return replace(made, regime=replace(made.regime, mode=mode, sharding_ranks=GROUP))


def test_all_that_have_replicas_by_the_formulas_know_groups() -> None:
    assert {*ABLE} == {name for name, able in PLANNERS.items() if able.context_parallel and able.replicas}


EVEN = {"gpipe-hybrid", "pipedream-2bw", "layout"}
"""Those that take all devices, in as many replicas for each stage."""


@pytest.mark.parametrize("planner", [name for name in ABLE if name not in ("tensor-parallel", "uniform")])
def test_replicas_that_would_be_faster_are_left_out(planner: str) -> None:
    """Two operators with hardly any weights, no messages: eight replicas, or four of each, would be the fastest.

    alpa-inter plans for micro-batches that were profiled, here of one sample, unless one is pinned.
    """
    pins = Pins(micro_batch=24 if planner == "alpa-inter" else None)
    made = chain_problem([1000, 1000], [2000, 2000], cluster(8), weights=[4, 4], mini_batch=24, pins=pins)
    regime = Regime(mode=PLANNERS[planner].regimes[0], optimizer="adam", optimizer_sharding="zero1")
    free = sound_plan(planner, replace(made, regime=regime))
    assert max(stage.data_parallel for stage in free.stages) >= 4
    groups = replace(made, regime=replace(regime, sharding_ranks=GROUP))
    if planner in EVEN:
        with pytest.raises(InfeasibleProblem, match="3 ranks share out a copy of the weights"):
            services().plan(planner, groups)
    else:
        assert {stage.data_parallel for stage in sound_plan(planner, groups).stages} <= {1, 2, 3, 6}


@pytest.mark.parametrize("planner", ABLE)
def test_plans_have_whole_groups_and_are_not_below_the_bounds(planner: str) -> None:
    made = given(PLANNERS[planner].regimes[0])
    plan = sound_plan(planner, made)
    replicas = {stage.data_parallel * plan.all_pipelines for stage in plan.stages}
    assert all(count <= GROUP or count % GROUP == 0 for count in replicas)


def test_others_are_not_asked() -> None:
    able = [name for name, each in PLANNERS.items() if each.replicas and not each.sharding_groups]
    assert able
    with pytest.raises(UnsupportedProblem, match=r"does not plan replicas .* in groups \(3 ranks\)"):
        services().plan(able[0], given("sync"))
