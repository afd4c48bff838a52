"""Where compiled kernels are kept."""

import sys
from pathlib import Path

import pytest

from pipebench.bench.searches.isolation.folders import ChildFolders
from pipebench.hooks.discovery import SUITE
from pipebench.system.kernel_folder import kernel_folder


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without a cache; the folder of the environment."""
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    return tmp_path / "environment"


def test_without_a_cache_of_the_user_kernels_are_kept_in_the_environment(no_home: Path) -> None:
    folders = ChildFolders()
    folders.renew(SUITE)
    (folders.kernels / "one").mkdir()
    (folders.kernels / "one" / "kernel.nbi").write_text("compiled")
    folders.keep_kernels(SUITE)
    folders.remove()
    (kept,) = no_home.rglob("kernel.nbi")
    assert kept.read_text() == "compiled"
    other = kernel_folder("another")
    assert other is not None
    assert other.is_relative_to(no_home)


def test_where_nothing_can_be_written_there_is_no_folder(no_home: Path) -> None:
    no_home.touch()
    assert kernel_folder() is None
