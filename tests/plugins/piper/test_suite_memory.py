"""memory=suite: where some plan of Piper's class fits by the suite's memory, one is found that does."""

import random
from itertools import product

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, ReplicaMode, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench_piper.planner import plan as piper
from pipebench_piper.plugin import PiperPlannerOptions
from tests.builders import cluster
from tests.plugins.piper.test_brute_force import besides_compute, offered_at, partitions, random_problem
from tests.plugins.running import context, scheduled

Way = tuple[int, int]
"""Tensor-parallel and data-parallel degree of a stage."""


def stages_of(problem: Problem, parts: list[list[int]], ways: tuple[Way, ...]) -> list[Stage]:
    """Stages without choices; each replica keeps what Piper counts: the sum of the degrees from the stage on."""
    names = [operator.name for operator in problem.profile.graph.operators]
    found, first = [], 0
    for at, (part, (t, d)) in enumerate(zip(parts, ways, strict=True)):
        found.append(
            Stage(
                operators=tuple(names[node] for node in part),
                devices=tuple(range(first, first + t * d)),
                data_parallel=d,
                tensor_parallel=t,
                micro_batch=1,
                replicas="round_robin",
                in_flight=min(-(-sum(d for _, d in ways[at:]) // d), problem.mini_batch),
                choice=tuple(f"{t}a" for _ in part),
            )
        )
        first += t * d
    return found


def least_seconds(problem: Problem, model: CostModel, plan: Plan, position: int, part: list[int]) -> float:
    """Over all choices of the stage's operators that fit: what others choose does not matter to it."""
    stage = plan.stages[position]
    edges = model.messages(plan)
    best = float("inf")
    for ways in offered_at(problem, part, stage.tensor_parallel):
        chosen = replace(stage, choice=tuple(way.id for way in ways))
        made = replace(plan, stages=(*plan.stages[:position], chosen, *plan.stages[position + 1 :]))
        peak = model.stage_memory(made, position, edges).peak(stage.in_flight // stage.micro_batch)
        if peak <= problem.cluster.memory_bytes:
            compute = model.stage_times(chosen).period / chosen.turns / 1e9
            best = min(best, compute + besides_compute(problem, part, ways, stage.data_parallel))
    return best


def brute_force(problem: Problem) -> float:
    """The least slowest stage of all plans of Piper's class that fit by the suite's memory."""
    devices, batch = problem.cluster.size, problem.mini_batch
    model = CostModel(problem)
    degrees = [(t, d) for t in (1, 2) for d in range(1, devices + 1) if batch % d == 0 and t * d <= devices]
    best = float("inf")
    for parts in partitions(problem):
        for ways in product(degrees, repeat=len(parts)):
            if sum(t * d for t, d in ways) > devices or sum(d for _, d in ways) > batch:
                continue
            stages = stages_of(problem, parts, ways)
            plan = Plan(stages=tuple(stages), order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
            worst = 0.0
            for position, part in enumerate(parts):
                worst = max(worst, least_seconds(problem, model, plan, position, part))
                if worst >= best:
                    break
            best = min(best, worst)
    return best


def instance(seed: int) -> Problem:
    """Three operators or fewer, and little memory."""
    chance = random.Random(seed)
    problem = random_problem(seed)
    while len(problem.profile.graph.operators) > 3:
        problem = random_problem(chance.randint(1000, 9999))
    bandwidth = problem.cluster.levels[0].bandwidth_bytes_s
    on = cluster(problem.cluster.size, memory=chance.randint(30, 160), bandwidth=bandwidth)
    return replace(problem, cluster=on)


def found_at(seed: int) -> str:
    """Check one instance; what came of it."""
    problem = instance(seed)
    expected = brute_force(problem)
    if expected == float("inf"):
        with pytest.raises(InfeasibleProblem):
            piper(problem, context(PiperPlannerOptions()))
        return "infeasible"
    found = piper(problem, context(PiperPlannerOptions()))
    assert check_plan(problem, found.plan).status == "valid"
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    assert found.claimed_native is not None
    if found.termination == "optimal":
        assert found.claimed_native == pytest.approx(expected, rel=1e-8)
    else:
        assert found.claimed_native >= expected * (1 - 1e-8)
    return found.termination


@pytest.mark.parametrize("seeds", range(0, 300, 30))
def test_a_plan_is_found_where_one_fits(seeds: int) -> None:
    assert {found_at(seed) for seed in range(seeds, seeds + 30)} >= {"infeasible", "optimal"}


def test_what_the_released_count_leaves_out_decides() -> None:
    """Plans of memory=piper that do not fit are why memory=suite is the default."""
    lacking = 0
    for seed in range(100):
        problem = instance(seed)
        try:
            made = piper(problem, context(PiperPlannerOptions(memory="piper")))
        except InfeasibleProblem:
            continue
        status = check_schedule(problem, made.plan, scheduled(problem, made.plan)).status
        assert (status == "invalid") == any("transfer buffers" in notice for notice in made.notices)
        lacking += status == "invalid"
    assert lacking > 5


@pytest.mark.parametrize("replicas", ["round_robin", "split"])
@pytest.mark.parametrize("seed", range(30))
def test_plans_of_a_pinned_micro_batch_fit(seed: int, replicas: ReplicaMode) -> None:
    given = random_problem(seed)
    problem = replace(given, pins=Pins(micro_batch=2 if given.mini_batch % 2 == 0 else 1))
    try:
        found = piper(problem, context(PiperPlannerOptions(replicas=replicas)))
    except InfeasibleProblem:
        return
    assert found.plan.takes_turns == (
        replicas == "round_robin" and any(stage.data_parallel > 1 for stage in found.plan.stages)
    )
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
