"""Search time of PaSE, warm, and the memory of its tables."""

import tracemalloc

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.plugins.pase.problems import by_walk, pase, problem


@pytest.mark.parametrize("devices", [8, 64])
@pytest.mark.parametrize("name", ["inception_v3", "transformer"])
def test_search(benchmark: BenchmarkFixture, name: str, devices: int) -> None:
    given = problem(name, devices)
    pase(given)
    result = benchmark.pedantic(pase, (given,), rounds=3 if benchmark.enabled else 1)
    assert result.termination == "optimal"


def test_memory_of_the_largest_search(benchmark: BenchmarkFixture) -> None:
    """The issue allows 4 GB; tables of the Transformer on 64 devices hold 49.8 million combinations."""
    given = problem("transformer", 64)
    tracemalloc.start()
    benchmark.pedantic(pase, (given,), rounds=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    benchmark.extra_info["peak_bytes"] = peak
    assert peak < 1e9


def test_walk(benchmark: BenchmarkFixture) -> None:
    given = problem("inception_v3", 8)
    benchmark.pedantic(by_walk, (given,), {"iterations": 20_000}, rounds=3 if benchmark.enabled else 1)
