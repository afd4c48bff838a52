"""gpipe-hybrid and pipedream-2bw: uniform stages with uniform replicas; tensor-parallel."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.check.pins import check_pins
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.profile import Alternative
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from tests.builders import chain_problem, cluster
from tests.plugins.running import services, time_ns


def problem(mode: RegimeMode = "sync", memory: int = 10**9, devices: int = 4, **more: Any) -> Problem:
    more = {"mini_batch": 8} | more
    on = cluster(devices, memory)
    return chain_problem(
        [5] * 8, [10] * 8, on, activations=[7] * 9, weights=[40] * 8, saved=[30] * 8, mode=mode, **more
    )


def scheduled(made: Problem, result: PlanResult) -> Schedule:
    name = "gpipe" if made.regime.mode == "sync" else "1f1b*"
    schedule = services().schedule(name, made, result.plan)
    assert check_schedule(made, result.plan, schedule).status == "valid"
    return schedule


@pytest.mark.parametrize(("name", "mode"), [("gpipe-hybrid", "sync"), ("pipedream-2bw", "async")])
def test_stages_have_as_many_layers_and_replicas(name: str, mode: RegimeMode) -> None:
    made = problem(mode)
    result = services().plan(name, made)
    assert len({len(stage.operators) for stage in result.plan.stages}) == 1
    assert len({stage.data_parallel for stage in result.plan.stages}) == 1
    assert result.plan.devices_used == 4
    assert len(result.plan.stages) >= 2
    scheduled(made, result)


def test_gpipe_hybrid_is_the_best_of_all_its_plans() -> None:
    """Claimed is what the simulator says; no other pinned number of stages or micro-batch is shorter."""
    made = problem()
    best = services().plan("gpipe-hybrid", made)
    simulated = services().simulate(made, best.plan, scheduled(made, best)).total_ns
    assert best.claimed_s == pytest.approx(simulated / 1e9)
    for stages in (2, 4):
        for micro_batch in (2, 4, 8):
            pins = Pins(pipeline=stages, data_parallel=4 // stages, micro_batch=micro_batch)
            pinned = replace(made, pins=pins)
            other = services().plan("gpipe-hybrid", pinned)
            assert check_pins(pinned, other.plan).status == "valid"
            assert services().simulate(pinned, other.plan, scheduled(pinned, other)).total_ns >= simulated


def test_2bw_holds_two_weight_versions() -> None:
    """Three times the weights of a stage, its buffers apart, in every peak."""
    made = problem("async")
    result = services().plan("pipedream-2bw", made)
    schedule = scheduled(made, result)
    assert isinstance(schedule, PeriodicSchedule)
    layers = 8 // len(result.plan.stages)
    verdict = check_schedule(made, result.plan, schedule)
    assert min(verdict.peak_bytes.values()) >= 3 * 40 * layers


def test_checkpointing_only_where_it_is_needed() -> None:
    always = services().plan("gpipe-hybrid", problem())
    needed = services().plan("gpipe-hybrid[checkpointing=needed]", problem())
    assert {stage.recompute for stage in always.plan.stages} == {"stage"}
    assert {stage.recompute for stage in needed.plan.stages} == {"none"}
    assert needed.claimed_s is not None
    assert always.claimed_s is not None
    assert needed.claimed_s < always.claimed_s


@pytest.mark.parametrize("name", ["gpipe-hybrid", "pipedream-2bw"])
def test_one_device_or_the_wrong_regime(name: str) -> None:
    mode: RegimeMode = "sync" if name == "gpipe-hybrid" else "async"
    other: RegimeMode = "async" if mode == "sync" else "sync"
    with pytest.raises(InfeasibleProblem, match="at least 2 stages"):
        services().plan(name, problem(mode, devices=1))
    with pytest.raises(UnsupportedProblem, match=f"{mode} regime"):
        services().plan(name, problem(other))
    with pytest.raises(InfeasibleProblem, match="needs"):
        services().plan(name, problem(mode, memory=50))


def split(made: Problem, degree: int) -> Problem:
    """Every operator can run on `degree` devices in an exact share of its time and weights."""
    on = made.profile.costs[0]
    operators = tuple(
        replace(
            each,
            alternatives=(
                Alternative(
                    id=f"tp{degree}",
                    tensor_parallel=degree,
                    forward_s=tuple(s / degree for s in each.forward_s),
                    backward_s=tuple(s / degree for s in each.backward_s),
                    parameter_bytes=40 // degree,
                    saved_bytes_per_sample=each.saved_bytes_per_sample / degree,
                ),
            ),
        )
        for each in on.operators
    )
    profile = replace(made.profile, costs=(replace(on, operators=operators),))
    return replace(made, profile=profile)


def test_tensor_parallel_fits_where_data_parallel_does_not() -> None:
    made = split(problem(memory=720), 4)
    with pytest.raises(InfeasibleProblem):
        services().plan("data-parallel", made)
    result = services().plan("tensor-parallel", made)
    (stage,) = result.plan.stages
    assert (stage.tensor_parallel, stage.data_parallel, set(stage.choice)) == (4, 1, {"tp4"})
    assert time_ns(made, result.plan) > 0


def test_without_accumulation_the_mini_batch_is_one_micro_batch() -> None:
    result = services().plan("tensor-parallel[accumulation=false]", split(problem(), 2))
    assert result.plan.stages[0].micro_batch == 8


def test_no_alternatives_is_unsupported() -> None:
    with pytest.raises(UnsupportedProblem, match="no alternatives"):
        services().plan("tensor-parallel", problem())


def test_stages_cut_by_time_are_no_less_balanced() -> None:
    on = cluster(2)
    made = chain_problem([9, 1, 1, 1, 1, 1], [9, 1, 1, 1, 1, 1], on, mode="sync", mini_batch=8)
    by_time = services().plan("gpipe-hybrid[cuts=time]", made)
    assert [len(stage.operators) for stage in by_time.plan.stages] == [1, 5]
