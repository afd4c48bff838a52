"""Tests take turns on a machine among themselves, not with whoever else runs pipebench there."""

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli.command_line import CommandLine

# The first example of a test may compile: no deadline. A change is judged by the same examples each time, the
# night draws others.
settings.register_profile("change", deadline=None, derandomize=True)
settings.register_profile("night", deadline=None)
settings.load_profile("change")

LONG = ("acceptance", "attacks", "cli", "docs", "fuzz", "testing", "third_party", "track")
"""Folders of tests that take seconds each."""


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more workers than cores, as many tests wait for processes and time limits."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin early: side by side, the last ones are short and all workers end together."""
    folder = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(folder).parts[0] not in LONG)


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: searches look for garbage in what is made from here on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_machine_lock(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The lock for timing trials lies in the folder for temporary files; subprocesses inherit it."""
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("machine"))
    tempfile.tempdir = None


@pytest.fixture
def pipebench(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line, as a user types it."""
    return CommandLine(capsys)
