"""Processes that need not import torch each."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugins.torch.warm import WarmProcess


@pytest.fixture(scope="session")
def warm_process() -> "Iterator[WarmProcess]":
    from tests.plugins.torch.warm import WarmProcess

    process = WarmProcess()
    yield process
    process.close()


@pytest.fixture
def warm(warm_process: "WarmProcess", monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and measurements of links start their processes by forking one that has imported torch."""
    from pipebench_torch import executor
    from pipebench_torch.profiling import links

    for module in (executor, links):
        monkeypatch.setattr(module, "run_ranks", warm_process.run_ranks)
