"""Search time of PipeDream's DP, tables included: 8 micro-batch sizes, warm."""

from time import process_time
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem, RegimeMode
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.paper_costs import operator_units
from pipebench_pipedream.partition import IntervalSearch
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.planner import replica_choices
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from tests.benchmarks.timed import keep_counters, only_when_measured
from tests.builders import cluster, dag_problem
from tests.plugins.pipedream.plain import released_bottleneck
from tests.plugins.pipedream.shared_problems import shared_problem
from tests.plugins.running import context

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def four_branches(mode: RegimeMode, devices: int) -> Problem:
    """97 operators: four branches of 24 and the operator that joins them."""
    tensors = [(o, (96,) if o % 24 == 23 else (o + 1,), 10**6) for o in range(96)]
    return random_costs(97, tensors, mode, devices)


def residual_chain(mode: RegimeMode, devices: int) -> Problem:
    """177 operators in a chain, with a skip over each ten."""
    tensors = [(o, (o + 1, o + 9) if o % 10 == 0 and o + 9 < 177 else (o + 1,), 10**6) for o in range(176)]
    return random_costs(177, tensors, mode, devices)


def random_costs(
    count: int, tensors: list[tuple[int, tuple[int, ...], int]], mode: RegimeMode, devices: int
) -> Problem:
    random = np.random.default_rng(0)
    return dag_problem(
        random.integers(10**5, 10**7, count).tolist(),
        random.integers(10**5, 2 * 10**7, count).tolist(),
        tensors,
        cluster(devices, 16 * 10**9, bandwidth=12.5e9),
        weights=random.integers(0, 10**7, count).tolist(),
        saved=random.integers(0, 4 * 10**6, count).tolist(),
        mode=mode,
        mini_batch=1024,
        micro_batches=SIZES,
    )


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("form", ["k", "bs"])
@pytest.mark.parametrize(
    ("build", "devices"), [(four_branches, 32), (residual_chain, 8)], ids=["mmt-32", "resnet50-8"]
)
def test_search(benchmark: BenchmarkFixture, build, devices: int, form, mode: RegimeMode) -> None:  # type: ignore[no-untyped-def]
    problem = build(mode, devices)

    def sweep() -> tuple[list[int | None], dict[str, int]]:
        order = linear_order(problem.profile.graph, "branch")
        bottlenecks: list[int | None] = []
        work = {"states": 0, "transitions": 0}
        for size in SIZES:
            costs = IntervalCosts(problem, order, replica_choices(problem, size))
            found, states, tried = IntervalSearch(costs, size, problem.cluster.memory_bytes, devices).run(form)
            bottlenecks.append(found.bottleneck_ns if found else None)
            work["states"] += states
            work["transitions"] += tried
        return bottlenecks, work

    sweep()
    bottlenecks, work = benchmark(sweep)
    assert any(bottlenecks)
    keep_counters(benchmark, work)


@pytest.mark.parametrize(("model", "devices"), [("resnet50", 8), ("densenet121", 8)])
def test_released_on_published_profiles(benchmark: BenchmarkFixture, model: str, devices: int) -> None:
    """The whole planner; `pipebench originals` runs the released optimizer beside it."""
    problem = shared_problem(model, devices)
    asked = context(PipeDreamPlannerOptions(cost="released", states="antichain"))
    pipedream(problem, asked)
    assert benchmark(lambda: pipedream(problem, asked)).claimed_native


@pytest.mark.benchmark(timer=process_time)
@pytest.mark.parametrize("cuts", ["first-source", "antichain"])
@pytest.mark.parametrize(
    ("model", "devices", "straight"), [("resnet50", 8, False), ("densenet121", 8, False), ("densenet121", 8, True)]
)
def test_fifty_times_faster_than_plain_python(
    benchmark: BenchmarkFixture, model: str, devices: int, straight: bool, cuts: Any
) -> None:
    """The released optimizer's walk and DP as the tests have them."""
    only_when_measured(benchmark)
    problem = shared_problem(model, devices)
    replication: Any = "none" if straight else "any"
    asked = context(PipeDreamPlannerOptions(cost="released", states=cuts, replication=replication))
    pipedream(problem, asked)
    start = process_time()
    units = operator_units(CostModel(problem), problem.mini_batch)
    expected = released_bottleneck(units, devices, problem.cluster.levels[0].bandwidth_bytes_s, straight)
    plain_s = process_time() - start
    found = benchmark(lambda: pipedream(problem, asked))
    assert found.claimed_native == pytest.approx(expected, rel=1e-12)
    benchmark.extra_info["ratio"] = plain_s / benchmark.stats.stats.median
    assert benchmark.extra_info["ratio"] > 50
