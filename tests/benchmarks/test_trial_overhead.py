"""What a trial costs beside its search: processes, calibration, check, score, store."""

import statistics
import time
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.components import ready_planner
from pipebench.bench.searches.calibration import calibrate
from pipebench.bench.store import Store
from pipebench.bench.sweeps.run_plan import make_run_plan
from pipebench.bench.sweeps.sweep import Where, run_trials
from pipebench.bench.trials.comparison import Request, trials
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.bench.searches.isolation.scripts import HONEST, HOST, PROBLEM
from tests.benchmarks.timed import only_when_measured

TRIALS, FIRST = 200, 5
MOST_CALIBRATIONS = 6.2
"""60 ms where the calibrations take 9.7 ms: one of them is part of each trial."""


def test_two_hundred_trivial_trials(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    only_when_measured(benchmark)
    script = tmp_path / "mine.py"
    script.write_text(HONEST)
    planner = ready_planner(HOST, parse_reference(str(script)))
    listed = trials(Request(workloads=[workload(PROBLEM)], planners=[planner], rounds=TRIALS, regimes=("sync",)))
    statuses: list[str] = []
    each_s: list[float] = []
    beside_s: list[float] = []

    def sweep() -> None:
        todo = make_run_plan(HOST, listed, Store.open(tmp_path / "store"))
        last_s = time.perf_counter()
        for finished in run_trials(HOST, todo, Where()):
            now_s = time.perf_counter()
            each_s.append(now_s - last_s)
            statuses.append(finished.outcome.row.status)
            calibrate()
            last_s = time.perf_counter()
            beside_s.append(last_s - now_s)

    benchmark.pedantic(sweep, rounds=1)
    assert statuses == ["ok"] * TRIALS
    assert len(Store.open(tmp_path / "store").rows()) == TRIALS
    of_calibrations = statistics.median(each_s[FIRST:]) / statistics.median(beside_s[FIRST:])
    benchmark.extra_info["calibrations"] = of_calibrations
    benchmark.extra_info["median_ms"] = statistics.median(each_s[FIRST:]) * 1e3
    assert of_calibrations < MOST_CALIBRATIONS
