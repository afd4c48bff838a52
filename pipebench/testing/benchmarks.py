"""The pytest plugin for benchmarks: a reference kernel runs around each, in the same process.

Load it with `-p pipebench.testing.benchmarks`, beside pytest-benchmark; tests stay as they are:

    pytest benchmarks -p pipebench.testing.benchmarks --benchmark-enable --benchmark-json FILE

The CPU time of a benchmark divided by that of the reference right before and after it moves far less from machine
to machine, and from night to night, than either. The ratios stand in the file, as extra_info["pipebench"];
`pipebench track record --benchmark-json FILE` takes them. The reference is plain Python;
`@pytest.mark.pipebench_reference("numpy")` or `"solver"` names one that does the same kind of work as the
benchmark.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.searches.calibration import WORKLOADS
from pipebench.track.measurement.benchmark_json import INFO, BenchmarkRatios, benchmark_environment

MARK = "pipebench_reference"
PAIRS, FEWEST_PAIRS = 15, 5
"""Pairs of a benchmark; as few where they take long."""
FEWEST_RUNS, MOST_RUNS = 4, 8
"""Of the reference before and after each call, more for long calls: on a busy machine the ratios of a compiled
kernel of 10 ms had a CV of 5.7 % between processes with one run, 4.0 % with four and 2.9 % with eight; its CPU
time had one of 13 to 29 %.
"""
LONGEST_S = 1.0
"""Wall seconds after which the fewest pairs are enough."""
OFF_CPU = 3.0
"""A benchmark with more wall time than this times its CPU time was waiting: its pair tells nothing."""


class ReferencedBenchmark(BenchmarkFixture):
    """pytest-benchmark's fixture, used as ever. What it measures itself stays as it is.

    A target that may be called at any time (`benchmark(target)`, or several iterations a round) is paired after
    pytest-benchmark has measured it. One with rounds of its own (`benchmark.pedantic`) is called no more often
    than it asked for: the reference runs between set-up and target, and between target and teardown.
    """

    reference: str

    def __call__(self, function_to_benchmark: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """As pytest-benchmark's."""
        result = super().__call__(function_to_benchmark, *args, **kwargs)  # type: ignore[no-untyped-call]
        if self.enabled:
            self._keep(_pairs(lambda: function_to_benchmark(*args, **kwargs), WORKLOADS[self.reference]))
        return result

    def pedantic(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """As pytest-benchmark's."""
        measure: Callable[..., Any] = super().pedantic
        if not self.enabled or iterations != 1:
            result = measure(target, args, kwargs, setup, teardown, rounds, warmup_rounds, iterations)
            if self.enabled:
                self._keep(_pairs(lambda: target(*args, **kwargs or {}), WORKLOADS[self.reference]))
            return result
        beside = _RoundsWithReference(target, setup, teardown, WORKLOADS[self.reference])
        result = measure(beside.target, args, kwargs, beside.set_up, beside.tear_down, rounds, warmup_rounds)
        self._keep(beside.pairs[warmup_rounds : warmup_rounds + rounds])
        return result

    def _keep(self, pairs: list[_Pair]) -> None:
        ratios = [pair.ratio for pair in pairs if not pair.waited and pair.ratio > 0]
        self.extra_info[INFO] = BenchmarkRatios.of(self.reference, ratios, len(pairs) - len(ratios)).as_dict


class _Pair:
    """CPU and wall seconds of one call, and CPU seconds of the reference before and after it."""

    def __init__(self, cpu_s: float, wall_s: float, before_s: float, after_s: float) -> None:
        beside_s = (before_s + after_s) / 2
        self.ratio = cpu_s / beside_s if beside_s > 0 else 0.0
        self.waited = wall_s > OFF_CPU * cpu_s


class _RoundsWithReference:
    """Set-up, target and teardown of a round, the reference between them."""

    def __init__(
        self,
        target: Callable[..., Any],
        setup: Callable[[], Any] | None,
        teardown: Callable[..., Any] | None,
        reference: Callable[[], object],
    ) -> None:
        self._target, self._setup, self._teardown, self._reference = target, setup, teardown, reference
        self._before_s = self._cpu_s = self._wall_s = 0.0
        self.pairs: list[_Pair] = []

    def set_up(self) -> Any:
        given = self._setup() if self._setup is not None else None
        self._before_s = _cpu_s(self._reference, FEWEST_RUNS)
        return given

    def target(self, *args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = self._target(*args, **kwargs)
        self._cpu_s = time.process_time() - cpu
        self._wall_s = time.perf_counter() - wall
        return result

    def tear_down(self, *args: Any, **kwargs: Any) -> None:
        self.pairs.append(_Pair(self._cpu_s, self._wall_s, self._before_s, _cpu_s(self._reference, FEWEST_RUNS)))
        if self._teardown is not None:
            self._teardown(*args, **kwargs)


def _pairs(call: Callable[[], object], reference: Callable[[], object]) -> list[_Pair]:
    """The reference, the benchmark, the reference, the benchmark, …, the reference."""
    with _no_collection():
        beside_s = statistics.median(_cpu_s(reference) for _ in range(3))
        call_s = max(_cpu_s(call), 1e-7)
        loops = max(1, math.ceil(beside_s / call_s))
        runs = min(MOST_RUNS, max(FEWEST_RUNS, round(call_s / beside_s))) if beside_s > 0 else MOST_RUNS
        found: list[_Pair] = []
        began = time.perf_counter()
        before_s = _cpu_s(reference, runs)
        while len(found) < PAIRS and (len(found) < FEWEST_PAIRS or time.perf_counter() - began < LONGEST_S):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(loops):
                call()
            cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
            after_s = _cpu_s(reference, runs)
            found.append(_Pair(cpu_s / loops, wall_s / loops, before_s, after_s))
            before_s = after_s
    return found


def _cpu_s(work: Callable[[], object], runs: int = 1) -> float:
    """CPU seconds of one run."""
    before = time.process_time()
    for _ in range(runs):
        work()
    return (time.process_time() - before) / runs


@contextmanager
def _no_collection() -> Generator[None]:
    """What other tests left behind is not looked through meanwhile."""
    usual = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", f"{MARK}(flavour): the reference kernel of a benchmark")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Every `benchmark` fixture that pytest-benchmark makes runs the reference beside."""
    made = yield
    if fixturedef.argname == "benchmark" and type(made) is BenchmarkFixture:
        mark = request.node.get_closest_marker(MARK)
        flavour = mark.args[0] if mark is not None and mark.args else next(iter(WORKLOADS))
        if flavour not in WORKLOADS:
            raise pytest.UsageError(f"{MARK}({flavour!r}): there are {', '.join(WORKLOADS)}")
        made.__class__ = ReferencedBenchmark
        vars(made)["reference"] = flavour
    return made


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """What a ratio depends on beside the code: the versions of solvers and numerical packages."""
    machine_info[INFO] = benchmark_environment()
