"""Time of the judge on 100,000 tasks, and of the bounds on 1,000 operators and 1,024 devices."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bounds import memory_bound, time_bound
from pipebench.check import check_schedule, check_trace
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.check.orders import finite, one_f_one_b

STAGES, MICRO_BATCHES = 16, 3125
PROBLEM = chain_problem([1] * STAGES, [2] * STAGES, cluster(STAGES), mode="sync", mini_batch=MICRO_BATCHES)
PLAN = stages_plan([[stage] for stage in range(STAGES)])
SCHEDULE = finite(PLAN, [one_f_one_b(MICRO_BATCHES, STAGES - stage) for stage in range(STAGES)])


@pytest.mark.benchmark(group="check")
def test_schedule(benchmark: BenchmarkFixture) -> None:
    assert benchmark(check_schedule, PROBLEM, PLAN, SCHEDULE).status == "valid"


@pytest.mark.benchmark(group="check")
def test_trace(benchmark: BenchmarkFixture) -> None:
    trace = simulate(PROBLEM, PLAN, SCHEDULE)
    assert benchmark(check_trace, PROBLEM, PLAN, SCHEDULE, trace).status == "valid"


@pytest.mark.benchmark(group="bounds")
def test_bounds(benchmark: BenchmarkFixture) -> None:
    times = [1000 + 7 * layer for layer in range(1000)]
    problem = chain_problem(times, times, cluster(1024), weights=times, mode="sync", mini_batch=4096)
    assert benchmark(lambda: (time_bound(problem).ns, memory_bound(problem).value)) > (0, 0)
