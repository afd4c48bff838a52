"""Search time of GraphPipe at every micro-batch size, warm.

test_search leaves the simulation of candidates out; the others are the planner as it is called, in CPU seconds.
"""

import time
from itertools import pairwise

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.domain.problem import Problem
from pipebench.domain.workload import WorkloadSpec
from pipebench.hooks.context import Context
from pipebench.hooks.manager import Host
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.series_parallel import decompose
from tests.benchmarks.timed import keep_counters, only_when_measured
from tests.builders import cluster, dag_problem
from tests.plugins.graphpipe.large_graphs import nasnet, problem_on
from tests.plugins.running import context

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
Tensors = list[tuple[int, tuple[int, ...], int]]


def four_branches(alike: bool) -> Problem:
    """97 operators on 32 devices: four branches of 24 and the operator that joins them."""
    tensors = [(o, (96,) if o % 24 == 23 else (o + 1,), 10**6) for o in range(96)]
    return made(97, tensors, 32, period=24 if alike else 97)


def residual_network() -> Problem:
    """177 operators on 8 devices: a chain with a skip over each ten, every fourth skip with an operator on it."""
    chain = [o for o in range(177) if o % 40 != 39]
    read = {before: [after] for before, after in pairwise(chain)}
    for start in range(0, 160, 10):
        side, end = start + 39 - start % 40, start + 9
        if start % 40 == 0 and side < 177:
            read[start].append(side)
            read[side] = [end]
        else:
            read[start].append(end if end % 40 != 39 else end + 1)
    return made(177, [(o, tuple(dict.fromkeys(after)), 10**6) for o, after in sorted(read.items())], 8, period=177)


def inception() -> Problem:
    """232 operators on 8 devices: eleven forks of four branches with nothing but a join between them."""
    tensors: Tensors = []
    join, count = 0, 1
    for _ in range(11):
        ends = []
        heads = [count, count + 2, count + 8, count + 14]
        tensors.append((join, tuple(heads), 10**6))
        for head, length in zip(heads, (2, 6, 6, 6), strict=True):
            tensors += [(head + at, (head + at + 1,), 10**6) for at in range(length - 1)]
            ends.append(head + length - 1)
        join = count + 20
        tensors += [(end, (join,), 10**6) for end in ends]
        count += 21
    return made(count, tensors, 8, period=count)


def made(count: int, tensors: Tensors, devices: int, period: int) -> Problem:
    """Random costs that repeat after `period` operators."""
    random = np.random.default_rng(0)

    def draw(low: int, high: int) -> list[int]:
        return (random.integers(low, high, period).tolist() * count)[:count]

    return dag_problem(
        draw(10**5, 10**7),
        draw(10**5, 2 * 10**7),
        tensors,
        cluster(devices, 16 * 10**9, bandwidth=12.5e9),
        weights=draw(0, 10**7),
        saved=draw(0, 4 * 10**6),
        mini_batch=1024,
        micro_batches=SIZES,
    )


PROBLEMS = {
    "mmt-32": lambda: four_branches(alike=True),
    "mmt-32-unlike": lambda: four_branches(alike=False),
    "resnet-8": residual_network,
    "inception-8": inception,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_search(benchmark: BenchmarkFixture, name: str) -> None:
    problem = PROBLEMS[name]()
    assert decompose(problem.profile.graph.successors).series_parallel

    def search() -> int:
        return len(plan(problem, Context(options=GraphPipeOptions(variant="paper", objective="tps"))).plan.stages)

    search()
    assert benchmark(search) > 1
    counted = Context(options=GraphPipeOptions(variant="paper", objective="tps"))
    plan(problem, counted)
    keep_counters(benchmark, counted.counters)


def of_model(model: str, devices: int, samples: int) -> Problem:
    """A model on Summit, with as many samples a device."""
    spec = WorkloadSpec(
        model=model,
        cluster="summit",
        devices=devices,
        mini_batch_per_device=samples,
        optimizer="adam",
    )
    return WorkloadBuilder(Host()).workload(spec).problem("sync")


PAPER = {"mmt": 16, "mmt[branches=2]": 16, "transformer": 16, "dlrm": 64, "candle-uno": 1024}
"""The models of the paper and their samples a device."""


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("variant", ["paper", "improved"])
@pytest.mark.parametrize("model", PAPER)
def test_the_models_of_the_paper_on_32_devices(benchmark: BenchmarkFixture, model: str, variant: str) -> None:
    """At most 0.3 s (paper) and 2 s (improved)."""
    only_when_measured(benchmark)
    problem = of_model(model, 32, PAPER[model])

    def search() -> int:
        return len(plan(problem, context(GraphPipeOptions(variant=variant))).plan.stages)  # type: ignore[arg-type]

    search()
    assert benchmark.pedantic(search, rounds=5) >= 1


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("variant", ["paper", "improved"])
@pytest.mark.parametrize("devices", [8, 32])
@pytest.mark.parametrize("name", ["inception_v3", "clip", "nasnet"])
def test_networks_of_hundreds_of_operators(
    benchmark: BenchmarkFixture, name: str, devices: int, variant: str
) -> None:
    """NASNet's graph has costs drawn for it; half of it is not series-parallel."""
    only_when_measured(benchmark)
    problem = problem_on(nasnet(), devices) if name == "nasnet" else of_model(name, devices, 16)

    def search() -> int:
        return len(plan(problem, context(GraphPipeOptions(variant=variant))).plan.stages)  # type: ignore[arg-type]

    search()
    assert benchmark.pedantic(search, rounds=1) >= 1


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("devices", [32, 64, 128, 256])
@pytest.mark.parametrize("branches", [4, 16])
def test_scaling(benchmark: BenchmarkFixture, branches: int, devices: int) -> None:
    only_when_measured(benchmark)
    problem = of_model(f"mmt[branches={branches}]", devices, 16)

    def search() -> int:
        return len(plan(problem, context(GraphPipeOptions(variant="paper"))).plan.stages)

    search()
    assert benchmark.pedantic(search, rounds=1) >= 1
