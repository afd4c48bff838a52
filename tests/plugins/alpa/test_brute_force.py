"""Alpa's cuts on small chains: every cut tried, by the suite's memory, in worlds with other cost models too."""

import random
from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench_alpa.planner import plan as alpa
from pipebench_alpa.plugin import AlpaOptions
from tests.altered import WORLDS, altered
from tests.builders import chain_problem, cluster
from tests.plugins.running import context

NS = 1e-9
DEVICES = 4


def instance(seed: int) -> Problem:
    """Nothing crosses between operators, and none needs workspace: of what Alpa leaves out there is nothing."""
    chance = random.Random(seed)
    count = chance.randint(1, 5)

    def drawn() -> list[int]:
        return [chance.randint(0, 40) for _ in range(count)]

    problem = chain_problem(
        drawn(), drawn(), cluster(DEVICES, memory=chance.choice([10**6, 250, 150, 100, 60])), weights=drawn(),
        saved=drawn(), mode="sync", mini_batch=chance.choice([1, 3, 8]), pins=Pins(micro_batch=1),
    )  # fmt: skip
    return replace(problem, cluster=cluster(DEVICES, memory=chance.choice([10**6, 250, 150, 100, 60])))


def cuts(problem: Problem) -> Iterator[Plan]:
    """Stages on 1, 2 or 4 devices, all used; one micro-batch of one sample, so no replicas."""
    names = [operator.name for operator in problem.profile.graph.operators]
    for count in range(1, min(len(names), DEVICES) + 1):
        for places in combinations(range(1, len(names)), count - 1):
            for sizes in product((1, 2, 4), repeat=count):
                if sum(sizes) == DEVICES:
                    ends = pairwise((0, *places, len(names)))
                    yield Plan(
                        stages=tuple(
                            Stage(operators=tuple(names[a:b]), devices=tuple(range(size)), tensor_parallel=size,
                                  micro_batch=1)
                            for (a, b), size in zip(ends, sizes, strict=True)
                        )
                    )  # fmt: skip


def brute_force(problem: Problem, most_live: int) -> float:
    """The least sum of stage times + (B - 1) times the largest over cuts that fit, a micro-batch for each stage
    from a stage on, at most `most_live`.
    """
    model, best = CostModel(problem), float("inf")
    for plan in cuts(problem):
        count = len(plan.stages)
        peaks = [model.stage_memory(plan, at, []).peak(min(count - at, most_live)) for at in range(count)]
        if max(peaks) <= problem.cluster.memory_bytes:
            times = [model.stage_times(stage, plan).period * NS for stage in plan.stages]
            best = min(best, sum(times) + (problem.mini_batch - 1) * max(times))
    return best


@pytest.mark.parametrize("world", ["", *WORLDS])
@pytest.mark.parametrize("memory", ["suite", "released"])
@pytest.mark.parametrize("seed", range(20))
def test_the_optimum(seed: int, memory: Any, world: str) -> None:
    """Both counts agree here, but that the released one holds more micro-batches than there are."""
    problem = instance(seed)
    options = AlpaOptions(memory=memory)
    with altered(world or "state", 25 if world else 0, 15, 7):
        expected = brute_force(problem, problem.mini_batch if memory == "suite" else DEVICES)
        if expected == float("inf"):
            with pytest.raises(InfeasibleProblem):
                alpa(problem, context(options))
            return
        found = alpa(problem, context(options))
        update_ns = CostModel(problem).formula.update_ns(0)
    assert found.claimed_native == pytest.approx(expected, rel=1e-9, abs=1e-18)
    assert found.claimed_s == pytest.approx(expected + update_ns * NS, rel=1e-9, abs=1e-18)
