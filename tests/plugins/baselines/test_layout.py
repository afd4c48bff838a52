"""The planner `layout`: pins, the best cuts, refusals."""

from itertools import combinations, pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.algorithms.degrees import way
from pipebench.algorithms.stage_row import stage_row
from pipebench.bench.services import HostServices
from pipebench.check import check_pins, check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench.hooks.manager import Host
from pipebench_baselines import layout
from tests.language_models import HEAVY_HEAD, TINY, problem

SERVICES = HostServices(Host())


def made(given: Problem) -> PlanResult:
    return layout.plan(given, Context(options=None, services=SERVICES))


def simulated(given: Problem, plan: Plan, scheduler: str = "1f1b") -> int:
    return SERVICES.simulate(given, plan, SERVICES.schedule(scheduler, given, plan)).total_ns


@pytest.mark.parametrize("pipeline", [2, 4])
def test_no_contiguous_cut_of_layers_is_faster(pipeline: int) -> None:
    """Every cut of eight layers, embedding and head, of which the head takes as long as some layers."""
    pins = Pins(
        tensor_parallel=1, pipeline=pipeline, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none"
    )
    given = problem(devices=4, mini_batch=8, pins=pins, **HEAVY_HEAD)
    run = way(given, 1, False)
    assert run is not None
    items = [(0,), *((layer,) for layer in range(1, 9)), (9, 10)]
    best = min(
        simulated(
            given,
            stage_row(
                given,
                [[op for group in items[a:b] for op in group] for a, b in pairwise((0, *inner, 10))],
                run,
                data_parallel=1,
                pipeline=pipeline,
                micro_batch=1,
            ),
        )
        for inner in combinations(range(1, 10), pipeline - 1)
    )
    found = simulated(given, made(given).plan)
    # The least largest stage; transfers, which differ from cut to cut, are simulated for a few candidates only.
    assert best <= found <= 1.02 * best


@pytest.mark.parametrize(
    "pins",
    [
        Pins(tensor_parallel=2),
        Pins(data_parallel=4),
        Pins(pipeline=2, tensor_parallel=4),
        Pins(pipeline=4, virtual_stages=2),
        Pins(micro_batch=4),
        Pins(recompute="stage"),
        Pins(recompute="none", tensor_parallel=8),
        Pins(tensor_parallel=2, pipeline=2, data_parallel=1),
    ],
)
def test_pins_are_honoured(pins: Pins) -> None:
    given = problem(devices=8, mini_batch=16, pins=pins, **TINY)
    result = made(given)
    assert check_pins(given, result.plan).status == "valid"
    schedule = result.schedule or SERVICES.schedule("1f1b", given, result.plan)
    assert check_schedule(given, result.plan, schedule).status == "valid"


def test_the_head_takes_layers_from_the_last_stage() -> None:
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    first, last = made(problem(devices=2, mini_batch=16, pins=pins, **HEAVY_HEAD)).plan.stages
    assert len(first.operators) > len(last.operators)


def test_recomputation_is_used_where_memory_asks_for_it() -> None:
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=2)
    given = problem(devices=2, mini_batch=16, pins=pins, **TINY | {"sequence": 4096})
    plenty = made(given).plan
    assert not any("recompute" in each for stage in plenty.stages for each in stage.choice)
    kinds = tuple(replace(kind, memory_bytes=1_200_000_000) for kind in given.cluster.types)
    tight = replace(given, cluster=replace(given.cluster, types=kinds))
    assert all("recompute" in each for stage in made(tight).plan.stages for each in stage.choice)


@pytest.mark.parametrize(
    ("pins", "error", "reason"),
    [
        ({"tensor_parallel": 3}, UnsupportedProblem, "the profile offers 1, 2, 4, 8"),
        ({"pipeline": 3}, InfeasibleProblem, "pp 3 do not go with 8 devices"),
        ({"pipeline": 8, "virtual_stages": 2}, InfeasibleProblem, "stages be at most as many as layers"),
        ({"tensor_parallel": 8, "pipeline": 8}, InfeasibleProblem, "tp 8, pp 8 do not go"),
        ({"tensor_parallel": 2, "pipeline": 2, "data_parallel": 8}, InfeasibleProblem, "do not go"),
        ({"pipeline": 1, "virtual_stages": 2}, InfeasibleProblem, "several devices in a row"),
        ({"pipeline": 4, "data_parallel": 2, "micro_batch": 1}, InfeasibleProblem, "samples of all replicas"),
        ({"pipeline": 4, "virtual_stages": 2, "micro_batch": 8}, InfeasibleProblem, "a multiple of pp"),
    ],
)
def test_pins_that_cannot_be(pins: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        made(problem(devices=8, mini_batch=16, pins=Pins(**pins), **TINY))


def test_too_little_memory_and_async() -> None:
    given = problem(devices=2, mini_batch=4, **TINY)
    kinds = tuple(replace(kind, memory_bytes=10**6) for kind in given.cluster.types)
    with pytest.raises(InfeasibleProblem, match="nothing fits"):
        made(replace(given, cluster=replace(given.cluster, types=kinds)))
    with pytest.raises(UnsupportedProblem, match="synchronous"):
        made(replace(given, regime=replace(given.regime, mode="async")))
