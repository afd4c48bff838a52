"""A repository with benchmarks whose work is counted, not timed: each kernel moves the clock by what it costs.

pytest and pytest-benchmark are the real ones, so are the plugin with the reference kernel, the files and the
commands. A machine of another speed, and the way the memory of a process lies, are factors of the run.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.track.against.made_repository import git

CONFTEST = """\
import os
import random
import time

MACHINE = float(os.environ.get("MACHINE", "1"))
DRAW = random.Random(os.environ.get("PROCESS", ""))
NOISE = float(os.environ.get("NOISE", "0"))


class Clock:
    now_s = 0.0


def CLOCK():
    Clock.now_s += 1e-9
    return Clock.now_s


time.process_time = time.perf_counter = CLOCK


def spend(seconds):
    Clock.now_s += seconds * MACHINE * DRAW.lognormvariate(0.0, NOISE)


from pipebench.bench.searches import calibration

calibration.WORKLOADS["interpreter"] = lambda: spend(0.003)
"""
KERNELS = """\
COST_S = {costs}
STATES = {{"same": 7, "fifteen": 7, "triple": 7}}
"""
TESTS = """\
import pytest
from conftest import CLOCK, spend
from kernels import COST_S, STATES


@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("name", COST_S)
def test_kernel(benchmark, name):
    benchmark.extra_info["counters"] = {"states": STATES[name]}
    benchmark(lambda: spend(COST_S[name]))
"""
BEFORE = {"same": 0.010, "fifteen": 0.010, "triple": 0.002}
AFTER = {"same": 0.010, "fifteen": 0.0115, "triple": 0.006}
NAME = "benchmarks/test_kernels.py::test_kernel[{}]"


def counted_repository(folder: Path) -> Path:
    """One commit: the kernels as they were."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "conftest.py").write_text(CONFTEST)
    (folder / "benchmarks" / "test_kernels.py").write_text(TESTS)
    (folder / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    git(folder, "init", "-q")
    commit(folder, BEFORE, "first")
    return folder


def commit(folder: Path, costs: dict[str, float], message: str) -> str:
    """The hash of a commit with kernels of these costs."""
    (folder / "benchmarks" / "kernels.py").write_text(KERNELS.format(costs=costs))
    (folder / "NEWS").write_text(f"{message}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD").strip()


def run_benchmarks(
    folder: Path, file: Path, *words: str, references: bool = True, **factors: float | str
) -> "subprocess.CompletedProcess[str]":
    """`pytest benchmarks --benchmark-json FILE`. factors: MACHINE, PROCESS, NOISE."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    with_references = ["-p", "pipebench.testing.benchmarks"] if references else []
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)),
            *with_references,
            *("--benchmark-enable", "--benchmark-max-time=0.01", f"--benchmark-json={file}"),
            *words,
            "benchmarks",
        ],
        cwd=folder,
        env=alone | {name: str(value) for name, value in factors.items()},
        capture_output=True,
        text=True,
        check=False,
    )


def dated(file: Path, number: int, commit_id: str = "") -> Path:
    """A copy of the file as a night of its own: run so many seconds after yesterday."""
    read = json.loads(file.read_text())
    read["datetime"] = (datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=number)).isoformat()
    if commit_id:
        read["commit_info"] |= {"id": commit_id, "dirty": False}
    copy = file.with_name(f"{number}-{file.name}")
    copy.write_text(json.dumps(read))
    return copy
