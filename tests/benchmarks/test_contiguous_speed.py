"""Search time of the exact contiguous optimum and of 1F1B*, chain building included, warm."""

import random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.chains.contiguous import Search, StageRange, contiguous_optimum, least_memory
from pipebench.algorithms.chains.contiguous_plan import contiguous_plan
from pipebench.algorithms.chains.one_f_one_b_star import one_f_one_b_star
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.benchmarks.timed import keep_counters
from tests.builders import chain_problem, cluster
from tests.plugins.contiguous import resnet50
from tests.shared_data import shared_data


def random_chain(layers: int, devices: int) -> Problem:
    """Times of 0.1 to 10 ms, activations up to 100 MB."""
    at = random.Random(layers)
    forward = [at.randrange(10**5, 10**7) for _ in range(layers)]
    return chain_problem(
        forward,
        [2 * f for f in forward],
        cluster(devices, 10**15, 12e9),
        activations=[at.randrange(10**5, 10**8) for _ in range(layers + 1)],
        weights=[at.randrange(10**5, 10**7) for _ in range(layers)],
    )


def solve(problem: Problem, memory: int) -> Search:
    chain = build_chain(CostModel(problem), linearise(problem.profile.graph), 1)
    return contiguous_optimum(chain, StageRange(1, problem.cluster.size), memory)


@pytest.mark.parametrize("tight", [1.1, 3.0])
@pytest.mark.parametrize(("layers", "devices"), [(77, 8), (300, 16), (1000, 32)])
def test_random_chains(benchmark: BenchmarkFixture, layers: int, devices: int, tight: float) -> None:
    problem = random_chain(layers, devices)
    chain = build_chain(CostModel(problem), linearise(problem.profile.graph), 1)
    memory = int(least_memory(chain, StageRange(1, devices)) * tight)
    found = benchmark(solve, problem, memory)
    assert found.best is not None
    keep_counters(benchmark, {"probes": found.probes, "states": found.states})


@pytest.mark.parametrize(("devices", "memory_gb"), [(4, 6), (8, 12)])
def test_resnet50(benchmark: BenchmarkFixture, devices: int, memory_gb: int) -> None:
    problem = resnet50(shared_data("pipedream/resnet50.txt"), devices, memory_gb * 10**9)
    found = benchmark(solve, problem, memory_gb * 10**9)
    assert found.best is not None
    keep_counters(benchmark, {"probes": found.probes, "states": found.states})


def test_schedule_of_64_stages(benchmark: BenchmarkFixture) -> None:
    problem = random_chain(64, 64)
    model = CostModel(problem)
    plan = contiguous_plan(model, build_chain(model, linearise(problem.profile.graph), 1), tuple(range(65)))
    assert benchmark(one_f_one_b_star, model, plan).period_ns > 0
