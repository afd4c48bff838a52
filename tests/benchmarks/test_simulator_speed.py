"""Tasks a second of CPU time of the whole simulator, from the plan's values to the finished trace.

Run it with `pytest tests/benchmarks --benchmark-enable`; without that it runs once and is not timed.
"""

from time import process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.domain.cluster import LinkMode
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import one_f_one_b_schedule

STAGES, MICRO_BATCHES = 64, 7812


@pytest.mark.benchmark(timer=process_time)
@pytest.mark.parametrize("mode", ["full", "half", "delay"])
def test_a_chain_of_64_stages(benchmark: BenchmarkFixture, mode: LinkMode) -> None:
    problem = chain_problem(
        [100] * STAGES,
        [200] * STAGES,
        cluster(STAGES, link_mode=mode),
        activations=[0, *[10] * (STAGES - 1), 0],
        saved=[5] * STAGES,
        mode="sync",
        mini_batch=MICRO_BATCHES,
    )
    plan = stages_plan([[stage] for stage in range(STAGES)])
    schedule = one_f_one_b_schedule(problem, plan)
    trace = benchmark.pedantic(simulate, (problem, plan, schedule), rounds=5, warmup_rounds=1)
    assert len(trace.kinds) == 2 * STAGES * MICRO_BATCHES
    benchmark.extra_info["counters"] = {"tasks": len(trace.kinds), "transfers": len(trace.transfer_kinds)}
    if benchmark.stats is not None:
        benchmark.extra_info["tasks_per_s"] = round(len(trace.kinds) / benchmark.stats.stats.median)
