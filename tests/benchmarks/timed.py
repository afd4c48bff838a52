"""What benchmarks share: bounds that hold only where something is measured, and counters that are exact."""

from collections.abc import Mapping

import pytest
from pytest_benchmark.fixture import BenchmarkFixture


def only_when_measured(benchmark: BenchmarkFixture) -> None:
    """Skip where benchmarks run once, unmeasured, as tests."""
    if not benchmark.enabled:
        pytest.skip("a bound on time: run with --benchmark-enable")


def keep_counters(benchmark: BenchmarkFixture, counters: Mapping[str, int]) -> None:
    """The work of one call: any change of it is told, on any machine."""
    benchmark.extra_info["counters"] = dict(counters)
