"""Replicas in turn reach PipeDream's claim: published profiles, and a run without flush."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions, pipebench_planners
from tests.builders import chain_problem, cluster
from tests.plugins.pipedream.shared_problems import shared_problem
from tests.plugins.running import context, scheduled, services, time_ns


def published(model: str, devices: int, micro_batches: int, mode: LinkMode) -> Problem:
    """A published profile on 1 GB/s without flush, a mini-batch of so many profiled ones."""
    given = shared_problem(model, devices)
    on = replace(given.cluster, link_mode=mode)
    return replace(given, cluster=on, mini_batch=micro_batches * given.mini_batch)


def run(problem: Problem, **options: Any) -> tuple[Plan, float]:
    """The plan and its claim in seconds for each micro-batch."""
    found = pipedream(problem, context(msgspec.convert(options, PipeDreamPlannerOptions)))
    assert check_plan(problem, found.plan).status == "valid"
    assert found.claimed_s is not None
    return found.plan, found.claimed_s * found.plan.stages[0].micro_batch / problem.mini_batch


def period_s(problem: Problem, made: Plan) -> float:
    """The simulated seconds of a micro-batch in steady state, each replica with whole micro-batches."""
    assert all(stage.turns == stage.data_parallel for stage in made.stages)
    schedule = scheduled(problem, made)
    assert isinstance(schedule, PeriodicSchedule)
    assert check_schedule(problem, made, schedule).status == "valid"
    period_ns = services().simulate(problem, made, schedule).period_ns
    assert period_ns is not None
    return period_ns / 1e9


@pytest.mark.parametrize(
    ("model", "devices", "micro_batches", "replicas"),
    [
        ("vgg16", 8, 1, [5, 2, 1]),
        ("vgg16", 8, 16, [7, 1]),
        ("alexnet", 16, 16, [5, 8, 1, 2]),
        ("resnet50", 8, 1, [4, 3, 1]),
    ],
)
def test_unequal_replicas_reach_the_claim_over_charged_links(
    model: str, devices: int, micro_batches: int, replicas: list[int]
) -> None:
    """A link has one transfer at a time, either way, as the search counts it."""
    problem = published(model, devices, micro_batches, "half")
    made, claimed_s = run(problem)
    assert [stage.data_parallel for stage in made.stages] == replicas
    assert period_s(problem, made) == pytest.approx(claimed_s, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "devices", "replicas", "printed"),
    [
        ("vgg16", 8, [4, 1, 1, 1, 1], "0.093513"),
        ("alexnet", 8, [3, 1, 1, 1, 1, 1], "0.011620"),
        ("alexnet", 16, [4, 2, 3, 3, 2, 1, 1], "0.007325"),
        ("resnet50", 8, [2, 1, 1, 1, 1, 1, 1], "0.056315"),
    ],
)
def test_plans_of_the_released_optimizer_reach_what_it_prints_over_free_links(
    model: str, devices: int, replicas: list[int], printed: str
) -> None:
    """Transfers wait for nothing. It counts two ring all-reduces for each micro-batch of a replica; four replicas
    have as many in mini-batches of two micro-batches.
    """
    problem = published(model, devices, 2, "delay")
    made, claimed_s = run(problem, cost="released")
    assert [stage.data_parallel for stage in made.stages] == replicas
    assert f"{claimed_s:.6f}" == printed
    assert period_s(problem, made) == pytest.approx(claimed_s, rel=0.03)


def test_info_says_what_replicas_mean() -> None:
    (planner,) = pipebench_planners()
    assert planner.capabilities.round_robin
    assert planner.default_scheduler == {"sync": "1f1b", "async": "1f1b-rr"}
    assert any("take whole micro-batches in turn" in each for each in planner.deviations)


@pytest.mark.parametrize("cost", ["paper", "released"])
def test_only_the_hand_over_of_the_own_models_depends_on_what_replicas_mean(cost: str) -> None:
    problem = published("vgg16", 8, 2, "delay")
    (made, claimed_s), (shared, same_s) = (
        run(problem, cost=cost, replicas=each) for each in ("round_robin", "split")
    )
    assert claimed_s == same_s
    assert any(stage.turns > 1 for stage in made.stages)
    in_split = tuple(replace(stage, replicas="split") for stage in made.stages)
    assert shared == replace(made, stages=in_split)
    assert check_schedule(problem, shared, scheduled(problem, shared)).status == "valid"


def test_sync_stages_of_unequal_replicas_reach_the_claim_without_flush() -> None:
    """Stages of 1, 4 and 1 replicas over free links: 16 mini-batches less 8."""
    on = cluster(6, bandwidth=1e18)
    short, long = (
        chain_problem([10, 40, 10], [20, 80, 20], on, mode="sync", mini_batch=48 * times, activations=[0] * 4)
        for times in (8, 16)
    )
    pinned = replace(short, pins=replace(short.pins, pipeline=3))
    made, claimed_s = run(pinned)
    assert [stage.data_parallel for stage in made.stages] == [1, 4, 1]
    assert [stage.in_flight for stage in made.stages] == [9, 2, 1]
    pace_s = (time_ns(long, made) - time_ns(short, made)) / (8 * 48) / 1e9
    assert pace_s == pytest.approx(claimed_s, rel=0.03)
    counted = replace(
        made, stages=tuple(replace(s, in_flight=n) for s, n in zip(made.stages, (6, 2, 1), strict=True))
    )
    assert time_ns(long, counted) >= time_ns(long, made)
