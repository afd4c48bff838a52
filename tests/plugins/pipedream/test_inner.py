"""Stages of PipeDream split further by another planner."""

import msgspec
import pytest

from pipebench.check import check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from pipebench_pipedream.inner import stage_problem
from pipebench_pipedream.planner import plan
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from tests.builders import cluster
from tests.models.zoo import model
from tests.plugins.running import context, scheduled, time_ns


def language_model(devices: int, pipeline: int | None = 2) -> Problem:
    """PaSE's language model, small, with times that follow its arithmetic; the last layer is all weights."""
    graph = model("pase-rnnlm", vocabulary=4096, units=64, sequence=4)
    seconds = {"embedding": 1e-6, "lstm": 4e-6, "projection": 4e-6, "loss": 1e-6}
    costs = tuple(
        OperatorCosts(
            operator=op.name,
            forward_s=(seconds[op.name],),
            backward_s=(2 * seconds[op.name],),
            saved_bytes_per_sample=1000.0,
        )
        for op in graph.operators
    )
    profile = Profile(
        name="lm", graph=graph, costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=costs),)
    )
    return Problem(
        profile=profile,
        cluster=cluster(devices, bandwidth=1e10),
        mini_batch=32,
        regime=Regime(mode="sync"),
        pins=Pins(pipeline=pipeline),
    )


def test_split_stages_are_valid_and_faster() -> None:
    given = language_model(4)
    plain = plan(given, context(PipeDreamPlannerOptions()))
    inside = plan(given, context(PipeDreamPlannerOptions(inner="pase")))
    assert any(any(split) for stage in inside.plan.stages for split in stage.sharding)
    assert time_ns(given, inside.plan) < time_ns(given, plain.plan)
    assert check_schedule(given, inside.plan, scheduled(given, inside.plan)).status == "valid"
    assert [stage.devices for stage in inside.plan.stages] == [stage.devices for stage in plain.plan.stages]
    assert "replicated stages run faster split as pase says" in inside.notices[-1]


def test_without_gain_the_plan_stays() -> None:
    given = msgspec.structs.replace(language_model(2), pins=Pins(pipeline=2))
    plain = plan(given, context(PipeDreamPlannerOptions()))
    inside = plan(given, context(PipeDreamPlannerOptions(inner="pase")))
    assert inside.plan == plain.plan
    assert inside.notices[-1].startswith("0 of 0")


def test_a_stage_that_the_inner_planner_cannot_fit_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Stage:
        raise InfeasibleProblem("too little memory")

    given = language_model(4)
    plain = plan(given, context(PipeDreamPlannerOptions()))
    monkeypatch.setattr("pipebench_pipedream.inner._inside", refuse)
    inside = plan(given, context(PipeDreamPlannerOptions(inner="pase")))
    assert inside.plan == plain.plan
    assert inside.notices[-1].startswith("0 of 2 replicated stages")


def test_a_stage_is_a_problem_of_its_own() -> None:
    given = language_model(4)
    stage = Stage(operators=("lstm", "projection"), devices=(1, 2, 3), data_parallel=3, micro_batch=6)
    inside = stage_problem(given, stage)
    assert [op.name for op in inside.profile.graph.operators] == ["lstm", "projection"]
    assert [(t.name, t.producer) for t in inside.profile.graph.tensors] == [
        ("embedding.out", None),
        ("lstm.out", "lstm"),
        ("projection.out", "projection"),
    ]
    assert inside.profile.graph.tensors[0].gradient_bytes_per_sample > 0
    assert all(name.startswith(("lstm", "projection")) for name in inside.profile.graph.parameter_bytes)
    assert (inside.cluster.size, inside.mini_batch, inside.pins.micro_batch) == (3, 6, 6)
    assert [c.operator for c in inside.profile.costs[0].operators] == ["lstm", "projection"]


def test_pinned_replicas_and_own_models_are_refused() -> None:
    pinned = msgspec.structs.replace(language_model(4), pins=Pins(data_parallel=2))
    with pytest.raises(UnsupportedProblem, match="2 replicas are pinned"):
        plan(pinned, context(PipeDreamPlannerOptions(inner="pase")))
    with pytest.raises(UnsupportedProblem, match="for cost=suite"):
        plan(language_model(4), context(PipeDreamPlannerOptions(inner="pase", cost="paper")))


def test_plans_of_the_inner_planner_have_one_stage() -> None:
    with pytest.raises(UnsupportedProblem, match="returned 2 stages for one"):
        plan(language_model(4), context(PipeDreamPlannerOptions(inner="uniform")))
