"""A/A: the same planner twice must look the same, by CPU time relative to the calibration beside it."""

import statistics

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.components import ready_planner
from pipebench.bench.problems.workload import Workload
from pipebench.bench.trials.comparison import Request, running_order, trials
from pipebench.bench.trials.trial import run_trial
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.row import Row
from pipebench.formats.clusters import load_cluster
from pipebench.formats.profiles.shipped import load_profile
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.benchmarks.timed import only_when_measured

ROUNDS, REPEATS = 11, 9
TOLERANCE = 0.05


@pytest.mark.parametrize("planner", ["pipedream", "graphpipe"])
def test_two_runs_of_one_planner_agree(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], planner: str
) -> None:
    """Rounds A-B-B-A, each in a process of its own: one process is as fast as its memory lies."""
    only_when_measured(benchmark)
    host = Host()
    profile = load_profile("resnet50")
    cluster = load_cluster("flat", devices=8, memory="16GB")
    problem = Problem(profile=profile, cluster=cluster, mini_batch=128, regime=Regime(mode="sync"))
    request = Request(
        workloads=[Workload("resnet50", problem)],
        planners=[ready_planner(host, parse_reference(planner)) for _ in range(2)],
        repeat=REPEATS,
        rounds=ROUNDS,
    )
    listed = trials(request)

    def both() -> tuple[list[Row], list[Row]]:
        rows = {position: run_trial(host, listed[position]).row for position in running_order(listed, seed=0)}
        return [rows[position] for position in range(ROUNDS)], [rows[ROUNDS + i] for i in range(ROUNDS)]

    runs = benchmark.pedantic(both, rounds=1)
    ratios = [statistics.median(row.search_ratio["interpreter"] for row in run) for run in runs]
    apart = ratios[1] / ratios[0] - 1
    with capsys.disabled():
        print(f"\n{planner}: paired CPU ratio {ratios[0]:.3f} and {ratios[1]:.3f}, apart by {apart:+.2%}")
        for run in runs:
            raw = [row.search_cpu_s or 0.0 for row in run]
            paired = [row.search_ratio["interpreter"] for row in run]
            print(f"  {ROUNDS} rounds of {REPEATS}: spread of CPU {spread(raw):.2%}, paired {spread(paired):.2%}")
    benchmark.extra_info.update(apart=apart)
    assert abs(apart) < TOLERANCE


def spread(numbers: list[float]) -> float:
    """Interquartile range over the median."""
    quarters = statistics.quantiles(numbers, n=4)
    return (quarters[2] - quarters[0]) / quarters[1]
