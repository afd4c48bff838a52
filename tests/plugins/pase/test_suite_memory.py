"""memory=suite: every strategy of a small model tried, weighed by the suite; the walk keeps to what fits."""

import random
from collections.abc import Iterator
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from pipebench.algorithms.planning import memory_limits
from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Pins, Problem
from pipebench.hooks.context import DeadlineReached
from pipebench_pase.elimination import Costs
from pipebench_pase.memory_limit import find_best_within
from pipebench_pase.ordering import elimination_order
from pipebench_pase.plugin import PaSEOptions
from pipebench_pase.strategy_plan import strategy_plan
from pipebench_pase.tables import price_problem
from tests.nightly import mostly_at_night
from tests.plugins.pase.problems import by_walk, pase, problem
from tests.plugins.running import scheduled

SEEDS = range(12)
FEW = (1, 2, 3, 4, 8, 10)


def instance(seed: int) -> Problem:
    """A language model of one cell on two or four devices; each operator saves something and needs workspace."""
    chance = random.Random(seed)
    given = problem("rnnlm", chance.choice([2, 4]), 4, vocabulary=4, units=4, layers=1, sequence=2)
    (device,) = given.profile.costs
    costs = tuple(
        replace(each, saved_bytes_per_sample=float(chance.randint(0, 100)), workspace_bytes=chance.choice([0, 50]))
        for each in device.operators
    )
    return replace(given, profile=replace(given.profile, costs=(replace(device, operators=costs),)))


def on(given: Problem, memory: int, reserve: float = 0.0) -> Problem:
    kind = DeviceType(name="gpu", memory_bytes=memory)
    return replace(given, cluster=replace(given.cluster, types=(kind,)), pins=Pins(reserve=reserve))


@cache
def strategies(seed: int) -> tuple[tuple[float, int], ...]:
    """Cost and bytes of every strategy, by PaSE's tables and by the suite's cost model."""
    given = instance(seed)
    prices = price_problem(given, PaSEOptions())
    tables = prices.pricing.search_tables(given.cluster.size, prices.cutoff)
    model = CostModel(given)
    found = []
    for numbers in product(*(range(len(space.configurations)) for space in tables.spaces)):
        plan = strategy_plan(given, prices.samples, tables.splits(numbers))
        found.append((tables.costs.of(numbers), model.stage_memory(plan, 0, []).peak(1)))
    return tuple(found)


def memories(seed: int) -> list[int]:
    """From one byte too few to enough for any strategy."""
    held = sorted({held for _, held in strategies(seed)})
    best = min(strategies(seed))[1]
    return sorted({held[0] - 1, held[0], held[len(held) // 3], best - 1, best, held[-1]})


def fullest(given: Problem, plan: object) -> int:
    return CostModel(given).stage_memory(plan, 0, []).peak(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", mostly_at_night(SEEDS, FEW))
def test_the_best_of_all_strategies_that_fit(seed: int) -> None:
    for memory in memories(seed):
        given = on(instance(seed), memory)
        costs = [cost for cost, held in strategies(seed) if held <= memory]
        if not costs:
            with pytest.raises(InfeasibleProblem, match="bytes are lacking"):
                pase(given)
            continue
        found = pase(given)
        assert found.claimed_native == pytest.approx(min(costs), rel=1e-12)
        assert found.termination == "optimal"
        assert check_schedule(given, found.plan, scheduled(given, found.plan)).status == "valid"
        assert fullest(given, found.plan) <= memory


@pytest.mark.parametrize("seed", mostly_at_night(SEEDS, FEW))
def test_the_walk_keeps_to_what_fits(seed: int) -> None:
    for memory in memories(seed):
        given = on(instance(seed), memory)
        costs = [cost for cost, held in strategies(seed) if held <= memory]
        if not costs:
            least = min(held for _, held in strategies(seed))
            with pytest.raises(InfeasibleProblem, match=f"{memory} bytes: {least - memory} bytes are lacking"):
                by_walk(given, iterations=500)
            continue
        found = by_walk(given, iterations=500)
        assert fullest(given, found.plan) <= memory
        assert found.claimed_native is not None
        assert found.claimed_native >= min(costs) * (1 - 1e-12)
        assert check_plan(given, found.plan).status == "valid"
        assert check_schedule(given, found.plan, scheduled(given, found.plan)).status == "valid"


@pytest.mark.nightly
def test_a_start_that_does_not_fit_is_led_down() -> None:
    told = []
    for seed in SEEDS:
        given = on(instance(seed), sorted({held for _, held in strategies(seed)})[1])
        free = by_walk(given, iterations=1, memory="ignored")
        found = by_walk(given, iterations=1)
        said = any("so that it fits in memory" in notice for notice in found.notices)
        assert said == (fullest(given, free.plan) > given.cluster.memory_bytes)
        told.append(said)
    assert any(told)


def test_memory_to_spare_changes_nothing() -> None:
    for seed in SEEDS:
        given = instance(seed)
        assert pase(given) == pase(given, memory="ignored")
        assert by_walk(given, iterations=500) == by_walk(given, iterations=500, memory="ignored")


def test_the_reserve_is_kept_where_something_fits_beside_it() -> None:
    held = sorted({held for _, held in strategies(0)})
    roomy, tight = on(instance(0), 2 * held[0], 0.5), on(instance(0), 2 * held[0] - 1, 0.5)
    assert memory_limits(roomy)[0] == held[0]
    for make in (pase, partial(by_walk, iterations=500)):
        assert fullest(roomy, make(roomy).plan) == held[0]
        assert held[0] <= fullest(tight, make(tight).plan) < 2 * held[0]


def test_out_of_time_the_best_so_far_counts() -> None:
    costs = Costs([np.array([0.0, 1.0, 5.0])] * 6, {})
    memory = [np.array([10, 7, 0])] * 6
    order = elimination_order(costs.adjacency, "generate-seq")
    whole = find_best_within(costs, memory, 38, order, 10_000)
    assert whole.proven
    ended = set()
    for most in (*range(1, 4), *range(4, whole.solved + 1, max(1, whole.solved // 12)), whole.solved):
        left = iter(range(most))

        def check(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise DeadlineReached("the time limit was reached")

        try:
            found = find_best_within(costs, memory, 38, order, 10_000, check)
        except DeadlineReached:
            ended.add("nothing found")
            continue
        assert found.strategy is not None
        assert sum(int(own[at]) for own, at in zip(memory, found.strategy, strict=True)) <= 38
        assert found.bound <= whole.cost <= found.cost
        ended.add("proven" if found.proven else "best so far")
    assert ended == {"nothing found", "best so far", "proven"}
