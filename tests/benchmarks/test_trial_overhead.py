"""What a trial costs beside its search: process, calibration, check, score, store."""

from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.components import ready_planner
from pipebench.bench.store import Store
from pipebench.bench.sweeps.run_plan import make_run_plan
from pipebench.bench.sweeps.sweep import Where, run_trials
from pipebench.bench.trials.comparison import Request, trials
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.bench.searches.isolation.scripts import HONEST, HOST, PROBLEM
from tests.benchmarks.timed import only_when_measured

TRIALS, LIMIT_S = 200, 15.0


def test_two_hundred_trivial_trials(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    only_when_measured(benchmark)
    script = tmp_path / "mine.py"
    script.write_text(HONEST)
    planner = ready_planner(HOST, parse_reference(str(script)))
    listed = trials(Request(workloads=[workload(PROBLEM)], planners=[planner], rounds=TRIALS))

    def sweep() -> list[str]:
        todo = make_run_plan(HOST, listed, Store.open(tmp_path / "store"))
        return [finished.outcome.row.status for finished in run_trials(HOST, todo, Where())]

    statuses = benchmark.pedantic(sweep, rounds=1)
    assert statuses == ["ok"] * TRIALS
    assert len(Store.open(tmp_path / "store").rows()) == TRIALS
    assert benchmark.stats.stats.max < LIMIT_S
