"""Tests take turns on a machine among themselves, not with whoever else runs pipebench there."""

import fcntl
import gc
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from numba.core.dispatcher import Dispatcher

from pipebench.cli.main import run
from tests.cli.command_line import CommandLine

# The first example of a test may compile: no deadline. A change is judged by the same examples each time, the
# night draws others.
settings.register_profile("change", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("night", deadline=None)
settings.load_profile("change")

LONG = ("acceptance", "attacks", "cli", "docs", "fuzz", "testing", "third_party", "track")
"""Folders of tests that take seconds each."""


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more workers than cores, as many tests wait for processes and time limits."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin early: side by side, the last ones are short and all workers end together."""
    long = tuple(f"{Path(__file__).parent / name}{os.sep}" for name in LONG)
    items.sort(key=lambda item: not str(item.path).startswith(long))


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays: searches look for garbage in what is made from here on."""
    _keep()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What the tests of a file have left (kept problems, reports) is nothing that those of others look through."""
    if nextitem is not None and nextitem.path != item.path:
        _keep()


def _keep() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_machine_lock(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The lock for timing trials lies in the folder for temporary files; subprocesses inherit it."""
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("machine"))
    tempfile.tempdir = None


@pytest.fixture(scope="session", autouse=True)
def kernels_in_turn(own_machine_lock: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A worker that needs a kernel which another one compiles waits, and reads what that one has kept."""
    locks = tmp_path_factory.getbasetemp().parent
    compile_now, held = Dispatcher.compile, set[str]()

    def compile_in_turn(dispatcher: Any, signature: Any) -> Any:
        kept = getattr(getattr(dispatcher._cache, "_cache_file", None), "_index_path", "")
        if not kept or kept in held:
            return compile_now(dispatcher, signature)
        with open(locks / f"{hashlib.sha256(kept.encode()).hexdigest()[:16]}.turn", "ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            held.add(kept)
            try:
                return compile_now(dispatcher, signature)
            finally:
                held.remove(kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_in_turn)
        if "PYTEST_XDIST_WORKER" in os.environ:
            _compile_first(locks)
        yield


def _compile_first(locks: Path) -> None:
    """One worker compiles what every comparison needs, before any test: commands that tests start find it."""
    small = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "8")
    with open(locks / "first.turn", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        assert run(["compare", "--planners", "uniform", *small]) == 0


@pytest.fixture
def pipebench(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line, as a user types it."""
    return CommandLine(capsys)
