"""Every searching kernel against plain Python that says the same: equal answers, and how many times faster.

Both run in one go and by CPU time, so that a busy machine slows both. The plain side is, of each kernel, the
Python that it is compiled from, in a process without compiler; and statements that stand apart: MadPipe's printed
recursion, the reference simulator, elimination with dictionaries. PipeDream's is in test_pipedream_speed.py.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.algorithms.chains.contiguous import longest_period
from pipebench.simulation.simulate import simulate
from pipebench_madpipe.grid import UP, ValueGrid, grid_dp, most_work
from pipebench_pase.elimination import Costs, find_best
from pipebench_pase.ordering import elimination_order
from tests.algorithms.test_contiguous import figures_of
from tests.benchmarks.searches import SEARCHES, tight_chain
from tests.benchmarks.timed import only_when_measured
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.madpipe.brute_force import chain_of, class_of, printed_dp
from tests.plugins.madpipe.test_paper import on_grid
from tests.plugins.pase.plain import least_cost
from tests.simulation.reference import reference
from tests.simulation.schedules import one_f_one_b_schedule

LEAST = {
    "madpipe: labels": 60,
    "madpipe: pattern": 90,
    "madpipe: paper's grid": 80,
    "contiguous": 90,
    "graphpipe": 6,
    "pipedream": 50,
    "piper": 15,
    "tarnawski": 30,
    "alpa": 20,
    "rannc: stages": 100,
    "simulator": 60,
    "greedy": 45,
}
"""How many times faster at least: half of what was seen. Whole planners hold Python that stays Python."""


def measured(benchmark: BenchmarkFixture, work: Callable[[], Any], plain_s: float, least: float) -> Any:
    """The answer of the work, which is at least so many times faster than plain_s."""
    work()  # kernels are loaded
    answer = benchmark(work)
    ratio = plain_s / benchmark.stats.stats.median
    benchmark.extra_info["ratio"] = ratio
    assert ratio > least
    return answer


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """An answer and its CPU seconds."""
    before = process_time()
    answer = work()
    return answer, process_time() - before


def test_each_search_has_its_floor() -> None:
    assert LEAST.keys() == SEARCHES.keys()


@pytest.mark.benchmark(timer=process_time)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_kernel_and_the_python_that_it_is_compiled_from(benchmark: BenchmarkFixture, name: str) -> None:
    only_when_measured(benchmark)
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.searches", name],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    plain = json.loads(done.stdout)
    answer = measured(benchmark, SEARCHES[name](), plain["cpu_s"], LEAST[name])
    assert json.loads(json.dumps(answer)) == plain["answer"]


@pytest.mark.benchmark(timer=process_time)
def test_the_papers_grid_and_its_printed_recursion(benchmark: BenchmarkFixture) -> None:
    """The recursion visits every state that can be reached, the kernel those that lead to a better value."""
    only_when_measured(benchmark)
    problem = tight_chain(16, 5)
    of, figures, longest = class_of(problem), figures_of(problem), longest_period(chain_of(problem))
    grid, target = ValueGrid(41, 8, 21, UP), longest // 2
    ends = {"load": most_work(of.table), "held": of.memory, "delay": longest}
    rounded = on_grid(grid, ends)
    expected, plain_s = timed(lambda: printed_dp(figures, target, of.most, of.memory, longest, rounded))
    found = measured(benchmark, lambda: grid_dp(of.table, of.memory, target, of.most, grid)[0], plain_s, 200)
    assert found == expected


@pytest.mark.benchmark(timer=process_time)
def test_the_simulator_and_the_reference_simulator(benchmark: BenchmarkFixture) -> None:
    only_when_measured(benchmark)
    stages, micro_batches = 8, 64
    problem = chain_problem(
        [100] * stages,
        [200] * stages,
        cluster(stages),
        activations=[0, *[10] * (stages - 1), 0],
        mode="sync",
        mini_batch=micro_batches,
    )
    plan = stages_plan([[stage] for stage in range(stages)])
    schedule = one_f_one_b_schedule(problem, plan)
    (tasks, _), plain_s = timed(lambda: reference(problem, plan, schedule))
    trace = measured(benchmark, lambda: simulate(problem, plan, schedule), plain_s, 100)
    assert trace.total_ns == max(end for _, end in tasks.values())


@pytest.mark.benchmark(timer=process_time)
def test_pases_elimination_with_arrays_and_with_dictionaries(benchmark: BenchmarkFixture) -> None:
    """A ladder of 2 x 12 vertices of 12 configurations: dependent sets of two. No table equals another."""
    only_when_measured(benchmark)
    draw = np.random.default_rng(0)
    rungs, sizes = 12, 12
    edges = [(2 * at, 2 * at + 1) for at in range(rungs)]
    edges += [(vertex, vertex + 2) for vertex in range(2 * (rungs - 1))]
    costs = Costs(
        [draw.integers(0, 10**6, sizes).astype(np.float64) for _ in range(2 * rungs)],
        {edge: draw.integers(0, 10**6, (sizes, sizes)).astype(np.float64) for edge in edges},
    )
    order = elimination_order(costs.adjacency, "generate-seq")
    expected, plain_s = timed(lambda: least_cost(costs, order.order))
    assert measured(benchmark, lambda: find_best(costs, order), plain_s, 20).cost == expected
