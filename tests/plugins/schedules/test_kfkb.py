"""kfkb: its orders, what it refuses, and that it never stalls where the in-flight rule decides."""

import random

import msgspec
import pytest

from pipebench.check import check_schedule
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench_schedules import single_stage
from pipebench_schedules.plugin import KFKBOptions
from tests.builders import cluster, dag_problem, stages_plan
from tests.simulation.schedules import one_f_one_b_schedule

FORK = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
JOIN = [(0, 1), (1, 2), (2, 4), (3, 4)]


def problem_of(edges: list[tuple[int, int]], mini_batch: int, forward: int = 10) -> Problem:
    """Five operators of 10 ns forward and 20 ns backward for each sample, without transfers."""
    readers: dict[int, list[int]] = {}
    for before, after in edges:
        readers.setdefault(before, []).append(after)
    return dag_problem(
        [forward] * 5,
        [2 * forward] * 5,
        [(before, after, 0) for before, after in sorted(readers.items())],
        cluster(5),
        mini_batch=mini_batch,
    )


def schedule(problem: Problem, plan: Plan, **options: object) -> FiniteSchedule:
    return single_stage.schedule_kfkb(problem, plan, Context(options=KFKBOptions(**options)))  # type: ignore[arg-type]


def plan_of(sizes: list[int], ks: list[int] | None = None, in_flight: list[int] | None = None) -> Plan:
    plan = stages_plan([[stage] for stage in range(len(sizes))], in_flight=in_flight)
    ks = ks or [1] * len(sizes)
    stages = zip(plan.stages, sizes, ks, strict=True)
    return msgspec.structs.replace(
        plan,
        stages=tuple(msgspec.structs.replace(stage, micro_batch=size, k=k) for stage, size, k in stages),
    )


def test_with_one_size_and_k_1_it_is_1f1b() -> None:
    problem = problem_of(JOIN, 16)
    for warmup in ("+1", "+2"):
        made = schedule(problem, plan_of([1] * 5), warmup=warmup)
        assert made == one_f_one_b_schedule(problem, plan_of([1] * 5), warmup)  # type: ignore[arg-type]


def test_a_join_runs_at_the_pace_of_its_stages() -> None:
    """16 micro-batches through a longest path of 4 stages take 19 turns of 30 ns."""
    problem = problem_of(JOIN, 16)
    assert simulate(problem, plan_of([1] * 5), schedule(problem, plan_of([1] * 5))).total_ns == 19 * 30


@pytest.mark.parametrize(("short", "turns"), [({3: 1}, 34), ({0: 3}, 32)])
def test_too_little_in_flight_stalls(short: dict[int, int], turns: int) -> None:
    kept = [4, 3, 2, 2, 1]
    for stage, samples in short.items():
        kept[stage] = samples
    problem, plan = problem_of(JOIN, 16), plan_of([1] * 5, in_flight=kept)
    made = one_f_one_b_schedule(problem, plan)
    # A stage that keeps less than the next one needs waits for ever or stalls; the former only is refused.
    assert simulate(problem, plan, made).total_ns == turns * 30
    assert schedule(problem, plan) == made


def test_an_order_that_deadlocks_is_refused_with_the_cycle() -> None:
    problem, plan = problem_of(FORK, 16), plan_of([1] * 5, in_flight=[2, 3, 2, 2, 1])
    for refuses in (schedule, one_f_one_b_schedule):
        with pytest.raises(UnsupportedProblem, match="deadlock") as caught:
            refuses(problem, plan)
        assert "stage 0" in caught.value.message


def test_k_of_the_option_goes_before_that_of_the_plan() -> None:
    problem = problem_of(JOIN, 16)
    by_plan = schedule(problem, plan_of([1] * 5, ks=[2] * 5))
    assert schedule(problem, plan_of([1] * 5), k=2) == by_plan
    assert by_plan.lanes[4].kinds.startswith("FFBBFFBB")


@pytest.mark.parametrize("seed", range(40))
def test_mixed_sizes_and_ks_on_random_graphs_are_valid(seed: int) -> None:
    rng = random.Random(seed)
    edges = [(a, b) for b in range(1, 5) for a in range(b) if rng.random() < 0.5]
    problem = problem_of(edges, 32)
    plan = plan_of([rng.choice((1, 2, 4)) for _ in range(5)], ks=[rng.choice((1, 2, 4)) for _ in range(5)])
    for warmup in ("+1", "+2"):
        made = schedule(problem, plan, warmup=warmup)
        verdict = check_schedule(problem, plan, made)
        assert (verdict.status, verdict.witness) == ("valid", None)


@pytest.mark.parametrize("seed", range(40))
def test_mixed_sizes_run_at_the_pace_of_the_slowest_stage(seed: int) -> None:
    """Times in proportion to samples, no transfers: what is over the fill and drain is nothing."""
    rng = random.Random(seed)
    edges = [(a, b) for b in range(1, 5) for a in range(b) if rng.random() < 0.5]
    sizes = [rng.choice((1, 2, 4)) for _ in range(5)]
    times = [
        simulate(p := problem_of(edges, n), plan_of(sizes), schedule(p, plan_of(sizes))).total_ns
        for n in (64, 128)
    ]
    assert times[1] - times[0] == 64 * 30


@pytest.mark.parametrize("options", [{"k": -1}, {"k": 2000}])
def test_wrong_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match="k is"):
        KFKBOptions(**options)
