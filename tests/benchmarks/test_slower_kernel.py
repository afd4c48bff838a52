"""A kernel made 15 % slower on purpose (more work, no sleep) is told over real nights, the others are not.

Its nights are minutes apart, so that a machine that is busy in between hides it: nothing else may run meanwhile.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.cli.main import run
from pipebench.track.judgement.judgement import judge
from pipebench.track.measurement.ratios import ratio_of
from pipebench.track.nights.history import open_history
from tests.benchmarks.timed import only_when_measured
from tests.track.against.made_repository import git
from tests.track.counted_benchmarks import dated

NIGHTS, AFTER, PROCESSES = 31, 4, 2
KERNELS = """\
import random
from pathlib import Path

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.model import CostModel
from tests.builders import chain_problem, cluster

CALLS = {calls}
DRAW = random.Random(0)
TIMES = [DRAW.randrange(10**5, 10**7) for _ in range(60)]
PROBLEM = chain_problem(TIMES, TIMES, cluster(8, 10**15, 12e9))
CHAIN = build_chain(CostModel(PROBLEM), linearise(PROBLEM.profile.graph), 1)


def compiled(calls=CALLS["compiled"]):
    for _ in range(calls):
        contiguous_optimum(CHAIN, StageRange(1, 8), 10**15)


def plain(calls=CALLS["plain"]):
    for _ in range(calls):
        sorted(TIMES[i % 60] * i % 1009 for i in range(1000))
"""
TESTS = """\
import pytest
import kernels


@pytest.mark.parametrize("name", kernels.CALLS)
def test_kernel(benchmark, name):
    benchmark(getattr(kernels, name))
"""


def commit(folder: Path, **calls: int) -> str:
    (folder / "benchmarks" / "kernels.py").write_text(KERNELS.format(calls=calls))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", str(calls))
    return git(folder, "rev-parse", "--short", "HEAD").strip()


def record(folder: Path, history: Path, number: int) -> None:
    """A night: processes of their own, then the command."""
    words: list[str] = []
    for process in range(PROCESSES):
        file = folder / ".git" / f"{process}.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pipebench.testing.benchmarks"]
        options = ["-p", "no:cacheprovider", "--rootdir", str(folder), "--benchmark-max-time=0.05"]
        options += [f"--benchmark-json={file}"]
        there = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([*command, *options, "benchmarks"], cwd=folder, env=os.environ | there, check=True)
        words += ["--benchmark-json", str(dated(file, PROCESSES * number + process))]
    assert run(["track", "record", "--history", str(history), "--import-only", *words]) == 0


@pytest.mark.timeout(3600)
def test_it_is_found_with_its_commit(
    benchmark: BenchmarkFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    only_when_measured(benchmark)
    folder, history = tmp_path / "mine", tmp_path / "history"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "test_kernels.py").write_text(TESTS)
    git(folder, "init", "-q")
    before = commit(folder, compiled=20, plain=20)
    monkeypatch.chdir(folder)

    def nights() -> str:
        for number in range(NIGHTS):
            record(folder, history, number)
        after = commit(folder, compiled=23, plain=20)
        for number in range(NIGHTS, NIGHTS + AFTER):
            record(folder, history, number)
        return after

    after = benchmark.pedantic(nights, rounds=1)
    opened = open_history(history)
    kept = [recorded.night for recorded in opened.nights]
    series = {
        name: [ratio_of(each.paired) for night in kept for each in night.benchmarks if name in each.name]
        for name in ("compiled", "plain")
    }
    events = [event for event in judge(opened).events if event.fails]
    with capsys.disabled():
        for name, ratios in series.items():
            usual = [ratio for ratio in ratios[:NIGHTS] if ratio is not None]
            level = statistics.median(usual)
            apart = statistics.stdev(usual) / level
            now = statistics.median(ratio for ratio in ratios[NIGHTS:] if ratio is not None) / level
            print(f"\n{name}: CV of {len(usual)} of {NIGHTS} nights {apart:.2%}, after {now:.3f} of the level")
        for event in events:
            print(f"{event.subject}: {event.change:+.1%} between {event.before} and {event.after}")
    assert [(event.subject, event.after) for event in events] == [
        ("benchmarks/test_kernels.py::test_kernel[compiled]", after)
    ]
    assert events[0].before in (before, after)  # noise may hide the first slower night: then the second is named
