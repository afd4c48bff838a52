"""The reference kernel beside benchmarks: ratios by hand, targets called as often as asked, what waited left
out."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.track.counted_benchmarks import BEFORE, CONFTEST, NAME, counted_repository, run_benchmarks

PEDANTIC = """\
import pytest
from conftest import CLOCK, Clock, spend

CALLS = []


@pytest.mark.benchmark(timer=CLOCK)
def test_rounds(benchmark):
    def set_up():
        CALLS.append("set-up")
        return (0.009,), {}

    def kernel(seconds):
        CALLS.append("kernel")
        spend(seconds)
        return 42

    result = benchmark.pedantic(
        kernel, setup=set_up, teardown=lambda seconds: CALLS.append("teardown"), rounds=3, warmup_rounds=2
    )
    assert result == 42
    if benchmark.enabled:
        assert ["set-up", "kernel", "teardown"] * 5 == CALLS


@pytest.mark.benchmark(timer=CLOCK)
def test_iterations(benchmark):
    benchmark.pedantic(spend, args=(0.0015,), rounds=3, iterations=4)


@pytest.mark.benchmark(timer=CLOCK)
def test_plain(benchmark):
    assert benchmark(lambda value: (spend(0.000003), value)[1], 5) == 5
    assert benchmark.stats is None or benchmark.stats.stats.rounds >= 5


class Waiting:
    def __call__(self):
        Clock.now_s += 1e-9
        return Clock.now_s + Waiting.asleep_s

    asleep_s = 0.0


@pytest.mark.benchmark(timer=CLOCK)
def test_waits(benchmark, monkeypatch):
    waiting = Waiting()
    monkeypatch.setattr("time.perf_counter", waiting)

    def sleep():
        Waiting.asleep_s += 0.1
        spend(0.001)

    benchmark(sleep)
"""


def ratios_of(file: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(file.read_text())["benchmarks"]
    return {each["name"]: each["extra_info"]["pipebench"] for each in found}


def test_a_ratio_is_the_cpu_time_over_that_of_the_reference_on_any_machine(tmp_path: Path) -> None:
    folder = counted_repository(tmp_path / "mine")
    for machine in (1.7, 0.3):
        done = run_benchmarks(folder, tmp_path / "found.json", MACHINE=machine)
        assert done.returncode == 0, done.stdout
        for name, found in ratios_of(tmp_path / "found.json").items():
            assert found["flavour"] == "interpreter"
            assert found["ratios"] == pytest.approx([BEFORE[name[12:-1]] / 0.003] * 15, rel=1e-4)
    versions = json.loads((tmp_path / "found.json").read_text())["machine_info"]["pipebench"]
    assert {"python", "numpy", "highspy"} <= set(versions)
    assert NAME.format("same").endswith("[same]")


@pytest.fixture(scope="module")
def pedantic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pedantic")
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "conftest.py").write_text(CONFTEST)
    (folder / "benchmarks" / "test_them.py").write_text(PEDANTIC)
    done = run_benchmarks(folder, folder / "found.json")
    assert done.returncode == 0, done.stdout
    return folder / "found.json"


@pytest.mark.parametrize(
    ("name", "ratio", "pairs"), [("test_rounds", 3.0, 3), ("test_iterations", 0.5, 15), ("test_plain", 0.001, 15)]
)
def test_targets_with_rounds_of_their_own_are_called_no_more_often(
    pedantic: Path, name: str, ratio: float, pairs: int
) -> None:
    assert ratios_of(pedantic)[name]["ratios"] == pytest.approx([ratio] * pairs, rel=2e-3)


def test_a_benchmark_that_waits_has_no_ratio(pedantic: Path) -> None:
    found = ratios_of(pedantic)["test_waits"]
    assert (found["ratios"], found["discarded"] >= 5) == ([], True)


def test_where_nothing_is_timed_the_fixture_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "benchmarks" / "test_them.py").write_text(PEDANTIC)
    done = run_benchmarks(tmp_path, tmp_path / "found.json", "--benchmark-disable")
    assert done.returncode == 0, done.stdout


def test_a_reference_that_there_is_not_is_said(tmp_path: Path) -> None:
    folder = counted_repository(tmp_path / "mine")
    (folder / "benchmarks" / "test_kernels.py").write_text(
        "import pytest\n\n\n@pytest.mark.pipebench_reference('fortran')\ndef test_it(benchmark):\n    pass\n"
    )
    done = run_benchmarks(folder, tmp_path / "found.json")
    assert "pipebench_reference('fortran'): there are interpreter, numpy, solver" in done.stdout
