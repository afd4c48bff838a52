"""Whole files: bounded reads, writes at once."""

import os
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.formats import files
from pipebench.formats.files import read_file, write_file


def test_write_makes_folders_and_leaves_nothing_beside(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.json"
    write_file(target, b"one")
    write_file(target, b"two")
    assert read_file(target) == b"two"
    assert os.listdir(target.parent) == ["b.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "plan.json"
    write_file(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(PipebenchError, match=r"cannot write .*plan\.json.*no space left"):
        write_file(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["plan.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "plan.json", b"new")
    assert os.listdir(tmp_path) == []


def test_reads_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PipebenchError, match="there is no file"):
        read_file(tmp_path / "missing.json")
    with pytest.raises(PipebenchError, match="is a directory"):
        read_file(tmp_path)
    (tmp_path / "plain").write_bytes(b"12345")
    with pytest.raises(PipebenchError, match=r"cannot read .*not a directory"):
        read_file(tmp_path / "plain" / "below")
    monkeypatch.setattr(files, "LARGEST_FILE_BYTES", 4)
    with pytest.raises(PipebenchError, match="is larger than"):
        read_file(tmp_path / "plain")


def test_writes_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    for target in (tmp_path, tmp_path / "plain" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(PipebenchError, match="cannot write"):
            write_file(target, b"data")
    assert os.listdir(tmp_path) == ["plain"]
