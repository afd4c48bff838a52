"""Search time of GraphPipe at every micro-batch size, warm; simulation of the candidates left out."""

from itertools import pairwise

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.algorithms.series_parallel import decompose
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.builders import cluster, dag_problem

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
