"""The planner `layout`: pins, the best cuts, refusals."""

import re
from itertools import combinations, pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.algorithms.chains.stage_row import stage_row, way
from pipebench.bench.services import HostServices
from pipebench.check import check_pins, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.placement import PlacementKind
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Scheduler
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import placements_of
from pipebench_baselines import layout
from tests.language_models import HEAVY_HEAD, TINY, problem

SERVICES = HostServices(Host())


def made(given: Problem) -> PlanResult:
    return layout.plan(given, Context(options=None, services=SERVICES))


def made_for(scheduler: str, given: Problem) -> PlanResult:
    """What it plans where the user names that scheduler."""
    component = SERVICES.scheduler(scheduler).component
    assert isinstance(component, Scheduler)
    placements = placements_of(component.capabilities)
    context = Context(options=None, services=SERVICES, scheduler=scheduler, placements=placements)
    return layout.plan(given, context)


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


def test_what_is_gathered_has_to_fit() -> None:
    """Replicas that share out weights hold less, and what they gather decides at the limit, to the byte."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2, recompute="none")
    given = problem(devices=4, mini_batch=16, pins=pins, sharding="zero3", **TINY)
    model, plan = CostModel(given), made(given).plan
    edges = model.messages(plan)
    peak = max(model.stage_memory(plan, at, edges).peak(2 - at) for at in range(2))
    gathered = max(model.stage_memory(plan, at, edges).workspace for at in range(2))
    assert gathered > 3 * max(given.profile.graph.weight_bytes)

    def with_memory(size: int) -> Problem:
        kinds = tuple(replace(kind, memory_bytes=size) for kind in given.cluster.types)
        return replace(given, cluster=replace(given.cluster, types=kinds))

    assert made(with_memory(peak)).plan.stages
    with pytest.raises(InfeasibleProblem):
        made(with_memory(peak - gathered))


@pytest.mark.parametrize(
    ("pins", "error", "reason"),
    [
        ({"tensor_parallel": 3}, UnsupportedProblem, "tensor parallelism of 1, 2, 4, 8 here, 3 is pinned"),
        ({"pipeline": 3}, InfeasibleProblem, "--pp 3 does not divide the 8 devices"),
        ({"pipeline": 8, "virtual_stages": 2}, InfeasibleProblem, "ask for 16 stages"),
        (
            {"tensor_parallel": 8, "pipeline": 8},
            InfeasibleProblem,
            "--tp 8, --pp 8 make 64, which is more than the 8",
        ),
        ({"tensor_parallel": 2, "pipeline": 2, "data_parallel": 8}, InfeasibleProblem, "make 32, which is more"),
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


@pytest.mark.parametrize(
    ("scheduler", "placement", "pins"),
    [
        ("zb-v", "v", {"pipeline": 2, "virtual_stages": 2}),
        ("interleaved-1f1b", "in-turn", {"pipeline": 2, "virtual_stages": 2}),
        ("chimera", "mirrored", {"pipeline": 4, "data_parallel": 2}),
    ],
)
def test_no_cut_is_faster_under_the_scheduler_that_the_user_names(
    scheduler: str, placement: PlacementKind, pins: dict[str, Any]
) -> None:
    """Every cut into four stages, placed by the same rule."""
    one = {"tensor_parallel": 1, "micro_batch": 1, "recompute": "none", "data_parallel": 1}
    given = problem(devices=4, mini_batch=8, pins=Pins(**one | pins), **HEAVY_HEAD)
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
                pipeline=pins["pipeline"],
                micro_batch=1,
                placement=placement,
            ),
            scheduler,
        )
        for inner in combinations(range(1, 10), 3)
    )
    result = made_for(scheduler, given)
    assert result.plan.placement == placement
    assert result.schedule is None  # the host asks the scheduler
    assert check_pins(given, result.plan).status == "valid"
    found = simulated(given, result.plan, scheduler)
    assert best <= found <= 1.02 * best
    assert result.claimed_s == found / 1e9


@pytest.mark.parametrize("scheduler", ["gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v", "chimera"])
@pytest.mark.parametrize("devices", [2, 4])
def test_plans_stand_as_the_scheduler_takes_them(scheduler: str, devices: int) -> None:
    given = problem(devices=devices, mini_batch=16, **TINY)
    plan = made_for(scheduler, given).plan
    schedule = SERVICES.schedule(scheduler, given, plan)
    assert check_schedule(given, plan, schedule).status == "valid"


@pytest.mark.parametrize(
    ("scheduler", "pins", "reason"),
    [
        ("zb-v", {"virtual_stages": 3}, "placement v that the scheduler takes.*a V has --vpp 2"),
        ("chimera", {"pipeline": 1}, "placement mirrored.*an even --pp"),
        ("chimera", {"data_parallel": 1}, "an even --dp"),
        ("1f1b", {"virtual_stages": 2, "pipeline": 2}, "placement apart"),
        ("zb-v", {"micro_batch": 8, "pipeline": 4, "data_parallel": 1}, "zb-v needs at least 7 micro-batches"),
    ],
)
def test_pins_that_the_scheduler_does_not_go_with(scheduler: str, pins: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedProblem) as raised:
        made_for(scheduler, problem(devices=4, mini_batch=16, pins=Pins(**pins), **TINY))
    assert re.search(reason, str(raised.value))
