"""Benchmarks whose bound is in seconds or percent: they judge only where they are asked to measure."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture


def only_when_measured(benchmark: BenchmarkFixture) -> None:
    """Skip where benchmarks run once, unmeasured, as tests."""
    if not benchmark.enabled:
        pytest.skip("a bound on time: run with --benchmark-enable")
