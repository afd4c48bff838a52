"""Speed stands apart: these run with --benchmark-enable, on a machine that does nothing else."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is in this folder where benchmarks are off."""
    if config.getoption("benchmark_enable"):
        return
    apart = pytest.mark.skip(reason="a benchmark: pytest tests/benchmarks --benchmark-enable")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(apart)
