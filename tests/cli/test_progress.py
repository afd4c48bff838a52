"""What is said about compilation."""

import time
from pathlib import Path

import pytest

from pipebench.cli import progress
from pipebench.cli.progress import about_compilation, about_compiling


def test_compilation_is_paid_once_only_where_kernels_can_be_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert about_compilation(9.46) == "compiled kernels in 9.5 s (once on this machine)"
    assert "once on this machine" in about_compiling(["layout"])
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    line = about_compilation(9.46)
    assert "as every run will" in line
    assert "set NUMBA_CACHE_DIR" in line
    assert "once" not in line
    assert "once" not in about_compiling(["layout"])


def test_off_a_terminal_what_takes_long_is_said_once_and_what_does_not_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LATE_S", 0.05)
    with progress.long_work("reading …") as working:
        working("reading [still] …")
        time.sleep(0.3)
    with progress.long_work("nothing …"):
        pass
    time.sleep(0.2)
    assert capsys.readouterr().err == "reading [still] …\n"
