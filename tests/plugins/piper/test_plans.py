"""What Piper's stages keep in flight lets every one of them go on."""

import random

import msgspec
import pytest

from pipebench.check import check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench_piper.planner import plan, without_deadlock
from pipebench_piper.plugin import PiperPlannerOptions
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import context, scheduled


def test_a_plan_of_unequal_replicas_does_not_wait_for_itself() -> None:
    """Six devices for stages of 1, 4 and 1 replicas: Piper's own count is 6, 8 and 1 samples."""
    problem = chain_problem(
        [10, 40, 10], [20, 80, 20], cluster(6), weights=[10**6, 0, 10**6], mode="sync", mini_batch=48
    )
    made = plan(problem, context(PiperPlannerOptions(memory="piper"))).plan
    assert [stage.data_parallel for stage in made.stages] == [1, 4, 1]
    assert [stage.in_flight for stage in made.stages] == [8, 8, 1]
    assert check_schedule(problem, made, scheduled(problem, made)).status == "valid"


def chain_of(sizes: list[int], kept: list[int]) -> Plan:
    made = stages_plan([[stage] for stage in range(len(sizes))], in_flight=kept)
    stages = (msgspec.structs.replace(s, micro_batch=b) for s, b in zip(made.stages, sizes, strict=True))
    return msgspec.structs.replace(made, stages=tuple(stages))


def goes_on(problem: Problem, sizes: list[int], kept: list[int]) -> bool:
    made = chain_of(sizes, kept)
    return check_schedule(problem, made, scheduled(problem, made)).status == "valid"


@pytest.mark.parametrize("seed", range(60))
def test_in_flight_is_raised_as_little_as_lets_every_stage_go_on(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 5)
    problem = chain_problem([10] * count, [20] * count, cluster(count), mode="sync", mini_batch=144)
    sizes = [rng.choice((1, 2, 3, 4, 6)) for _ in range(count)]
    wanted = [size * rng.randint(1, 5) for size in sizes]
    kept = without_deadlock(sizes, wanted)
    assert goes_on(problem, sizes, kept)
    for stage, size in enumerate(sizes):
        assert kept[stage] % size == 0
        if kept[stage] > wanted[stage]:
            less = [samples - size if at == stage else samples for at, samples in enumerate(kept)]
            assert not goes_on(problem, sizes, less)
