"""Speed stands apart: these run with --benchmark-enable, on a machine that does nothing else."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is in this folder where benchmarks are off."""
    if config.getoption("benchmark_enable"):
        return
    apart = pytest.mark.skip(reason="a benchmark: pytest tests/benchmarks --benchmark-enable")
    folder = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(apart)
