"""The pin micro_batch_size: samples of one replica, honoured by every planner that ships, or `unsupported`."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.components import Ready, ready_planner
from pipebench.check import check_pins, check_plan
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.profile import Alternative
from pipebench.hooks.syntax import parse_reference
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.plugins.running import services

REPLICATED = (
    "layout",
    "uniform",
    "data-parallel",
    "tensor-parallel",
    "tensor-parallel[accumulation=false]",
    "gpipe-hybrid",
    "pipedream-2bw",
    "graphpipe",
    "rannc",
    "rannc[variant=paper]",
    "pipedream",
    "pipedream[replicas=split]",
    "pipedream[cost=paper]",
    "piper",
    "piper[replicas=split]",
    "alpa-inter",
)
STRICT = ("rannc[variant=paper]", "tensor-parallel[accumulation=false]")
"""Of these, those that find no plan for some sizes that go."""
ALONE = ("contiguous-exact", "madpipe", "tarnawski")
SPLITTING = ("pase", "expert", "mcmc")


def problem(devices: int = 4, mini_batch: int = 8, mode: RegimeMode = "sync", **pins: Any) -> Problem:
    """Three operators in a row, with an alternative on two devices each."""
    made = dag_problem(
        [30, 50, 40],
        [60, 100, 80],
        [(0, (1,), 4), (1, (2,), 4)],
        cluster(devices),
        weights=[5, 5, 5],
        mini_batch=mini_batch,
        micro_batches=(1, 2, 4),
        mode=mode,
        pins=Pins(**pins),
    )
    costs = made.profile.costs[0]
    split = Alternative(
        id="tp2",
        tensor_parallel=2,
        forward_s=(20e-9,) * 3,
        backward_s=(40e-9,) * 3,
        parameter_bytes=3,
        saved_bytes_per_sample=1.0,
        fixed_bytes=0,
    )
    operators = tuple(replace(each, alternatives=(split,)) for each in costs.operators)
    return replace(made, profile=replace(made.profile, costs=(replace(costs, operators=operators),)))


def plan_by(name: str, given: Problem) -> Plan:
    ready: Ready = ready_planner(services().host, parse_reference(name))
    return services().plan(name, _in_regime_of(ready, given)).plan


def _in_regime_of(ready: Ready, given: Problem) -> Problem:
    regimes = ready.component.capabilities.regimes  # type: ignore[union-attr]
    mode = given.regime.mode if given.regime.mode in regimes else regimes[0]
    return replace(given, regime=replace(given.regime, mode=mode))


def samples_of_a_replica(plan: Plan) -> set[float]:
    """By the definition of the two ways to share micro-batches, without `Stage.sharers`."""
    return {
        stage.micro_batch if stage.replicas == "round_robin" else stage.micro_batch / stage.data_parallel
        for stage in plan.stages
    }


@pytest.mark.parametrize("name", [*REPLICATED, *ALONE, *SPLITTING])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_planner_honours_it_or_refuses(name: str, data: st.DataObject) -> None:
    each = data.draw(st.sampled_from([1, 2, 3, 4]), "samples of a replica")
    replicas = data.draw(st.sampled_from([None, None, 1, 2, 3]), "replicas")
    stages = data.draw(st.sampled_from([None, None, 1, 2]), "stages")
    total = data.draw(st.sampled_from([None, None, None, each, 2 * each]), "micro-batch")
    devices, mini_batch = data.draw(st.sampled_from([1, 2, 3, 4, 6])), data.draw(st.sampled_from([4, 8, 12, 24]))
    mode = data.draw(st.sampled_from(["sync", "async"]))
    try:
        asked = problem(
            devices,
            mini_batch,
            mode,
            micro_batch_size=each,
            data_parallel=replicas,
            pipeline=stages,
            micro_batch=total,
        )
    except InvalidValue:
        return
    try:
        plan = plan_by(name, asked)
    except (UnsupportedProblem, InfeasibleProblem):
        return
    assert check_plan(asked, plan).status == "valid"
    assert check_pins(asked, plan).status == "valid", plan
    assert samples_of_a_replica(plan) == {each}


@pytest.mark.parametrize("name", ["tensor-parallel", "data-parallel", "uniform", "piper[replicas=split]"])
def test_with_replicas_pinned_each_has_its_samples(name: str) -> None:
    plan = plan_by(name, problem(mini_batch=32, micro_batch_size=4, data_parallel=2))
    assert {stage.data_parallel for stage in plan.stages} == {2}
    assert samples_of_a_replica(plan) == {4}


def test_without_accumulation_the_mini_batch_must_be_that_of_all_replicas() -> None:
    whole = "tensor-parallel[accumulation=false]"
    assert samples_of_a_replica(plan_by(whole, problem(mini_batch=8, micro_batch_size=4, data_parallel=2))) == {4}
    with pytest.raises(InfeasibleProblem, match="pinned replicas of 2 samples each"):
        plan_by(whole, problem(mini_batch=8, micro_batch_size=2, data_parallel=2))


@pytest.mark.parametrize("name", [name for name in (*REPLICATED, *ALONE) if name not in STRICT])
@pytest.mark.parametrize("each", [1, 2, 4])
def test_a_size_that_goes_gets_a_plan(name: str, each: int) -> None:
    pins = {"data_parallel": 2} if name == "pipedream[cost=paper]" else {}
    plan = plan_by(name, problem(micro_batch_size=each, **pins))
    assert samples_of_a_replica(plan) == {each}


@pytest.mark.parametrize("name", SPLITTING)
def test_planners_that_split_operators_refuse_it_alike(name: str) -> None:
    with pytest.raises(
        UnsupportedProblem, match=r"does not plan for a micro-batch size of one replica, 2 is pinned"
    ):
        plan_by(name, problem(micro_batch_size=2))


@pytest.mark.parametrize(
    "name", ["layout", "data-parallel", "alpa-inter", "rannc", "graphpipe", "piper[replicas=split]"]
)
@pytest.mark.parametrize("each", [1, 2])
def test_with_replicas_pinned_it_is_the_total_divided(name: str, each: int) -> None:
    """Both ways to say the same micro-batch lead to plans of the same simulated time."""
    mine = plan_by(name, problem(micro_batch_size=each, data_parallel=2))
    same = plan_by(name, problem(micro_batch=2 * each, data_parallel=2))
    assert [s.operators for s in mine.stages] == [s.operators for s in same.stages]
    assert [s.micro_batch for s in mine.stages] == [s.micro_batch for s in same.stages]


def test_the_paper_s_rannc_with_two_samples_a_replica() -> None:
    """Its search stops at the first number of stages that uses all devices, so not every size goes."""
    assert samples_of_a_replica(plan_by("rannc[variant=paper]", problem(micro_batch_size=2))) == {2}


def test_data_parallel_uses_all_devices_where_the_total_would_not() -> None:
    """One sample a replica leaves room for replicas; one sample for all of them does not."""
    free = plan_by("data-parallel", problem(8, 8, micro_batch_size=1))
    bound = plan_by("data-parallel", problem(8, 8, micro_batch=1))
    assert (free.devices_used, bound.devices_used) == (8, 1)


PLAIN = chain_problem([1] * 4, [1] * 4, cluster(8), mode="sync", mini_batch=8)
SHARED = stages_plan([[0, 1], [2, 3]], micro_batch=4, replicas=[2, 2])


def in_turn(plan: Plan) -> Plan:
    return replace(plan, stages=tuple(replace(stage, replicas="round_robin") for stage in plan.stages))


@pytest.mark.parametrize(
    ("pins", "plan", "found"),
    [
        (Pins(micro_batch_size=2), SHARED, ""),
        (Pins(micro_batch_size=4), SHARED, "stage 0 has 2"),
        (Pins(micro_batch_size=4), in_turn(SHARED), ""),
        (Pins(micro_batch_size=2), in_turn(SHARED), "stage 0 has 4"),
        (Pins(micro_batch_size=2, micro_batch=4), SHARED, ""),
        (
            Pins(micro_batch_size=2),
            stages_plan([[0, 1, 2, 3]], micro_batch=4, replicas=[3]),
            "has 4 for 3 replicas",
        ),
        (Pins(micro_batch_size=2), replace(SHARED, copies=2), ""),
    ],
)
def test_the_check(pins: Pins, plan: Plan, found: str) -> None:
    verdict = check_pins(replace(PLAIN, pins=pins), plan)
    assert (verdict.status == "valid") == (not found)
    if verdict.witness is not None:
        assert verdict.witness.message.startswith("micro_batch_size is pinned to ")
        assert found in verdict.witness.message


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ({"micro_batch_size": 0}, "micro_batch_size"),
        ({"micro_batch_size": 16}, "micro-batch size 16 is larger than the mini-batch 8"),
        ({"micro_batch_size": 3}, "micro-batch size 3 does not divide the mini-batch 8"),
        ({"micro_batch_size": 4, "micro_batch": 2}, "not the micro-batch size 4 times a number of replicas"),
        ({"micro_batch_size": 2, "micro_batch": 8, "data_parallel": 2}, "times of 2 replicas|times"),
    ],
)
def test_pins_that_contradict_are_refused(pins: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        problem(**pins)


def test_the_id_covers_it_only_where_it_is_said() -> None:
    ids = {problem().workload_id, problem(micro_batch_size=1).workload_id, problem(micro_batch_size=2).workload_id}
    assert len(ids) == 3
    assert problem(micro_batch_size=None).workload_id == problem().workload_id
