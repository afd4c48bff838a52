"""The calibrations that every search time is divided by: what a nightly import puts beside the kernels.

Run them with `pytest tests/benchmarks --benchmark-enable --benchmark-json FILE`; `pipebench track record
--benchmark-json FILE` takes the file into the history.
"""

from time import process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.bench.searches.calibration import WORKLOADS


@pytest.mark.benchmark(timer=process_time)
@pytest.mark.parametrize("flavour", list(WORKLOADS))
def test_a_calibration(benchmark: BenchmarkFixture, flavour: str) -> None:
    result = benchmark(WORKLOADS[flavour])
    assert result is not None
    benchmark.extra_info["calibration"] = flavour
