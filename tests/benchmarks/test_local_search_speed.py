"""Bounds of the nodes of `finite-bnb`, which `local-search` asks for the best plan's order, compiled and not."""

from time import process_time

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.algorithms.jit import in_python
from pipebench_schedules.finite_tasks import job_shop
from pipebench_schedules.order_tree import Waits, heads_and_least
from tests.benchmarks.searches import chain
from tests.benchmarks.timed import only_when_measured
from tests.builders import stages_plan

STAGES, MICRO_BATCHES, TIMES = 16, 8, 50
LEAST = 20
"""How many times faster at least."""


@pytest.mark.benchmark(timer=process_time)
def test_nodes_are_bounded_in_compiled_code(benchmark: BenchmarkFixture) -> None:
    """Of a root, where all tasks are left."""
    only_when_measured(benchmark)
    problem = chain(STAGES, STAGES, mode="sync", mini_batch=MICRO_BATCHES)
    waits = Waits.of(job_shop(problem, stages_plan([[stage] for stage in range(STAGES)]), False))
    ends, free = np.full(len(waits.lane), -1, np.int64), np.zeros(STAGES, np.int64)
    heads, least = benchmark(heads_and_least, ends, free, waits)
    plain = in_python(heads_and_least)
    began_s = process_time()
    for _ in range(TIMES):
        plain_heads, plain_least = plain(ends, free, waits)
    plain_s = (process_time() - began_s) / TIMES
    assert (heads.tolist(), least) == (plain_heads.tolist(), plain_least)
    assert plain_s > LEAST * benchmark.stats.stats.median
