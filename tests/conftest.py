"""Tests take turns on a machine among themselves, not with whoever else runs pipebench there."""

import gc
import os
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("kernels", deadline=None)  # the first example of a test may compile
settings.load_profile("kernels")


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: searches look for garbage in what is made from here on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_machine_lock(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The lock for timing trials lies in the folder for temporary files; subprocesses inherit it."""
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("machine"))
    tempfile.tempdir = None
