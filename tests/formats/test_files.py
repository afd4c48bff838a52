"""Whole files: bounded reads, writes at once."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.formats import files
from pipebench.formats.files import prepare_file, read_file, write_file


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
    monkeypatch.setattr("pipebench.system.files.LARGEST_FILE_BYTES", 4)
    with pytest.raises(PipebenchError, match="is larger than"):
        read_file(tmp_path / "plain")


def test_writes_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    for target in (tmp_path, tmp_path / "plain" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(PipebenchError, match="cannot write"):
            write_file(target, b"data")
    assert os.listdir(tmp_path) == ["plain"]


def test_a_link_is_kept_and_what_it_points_at_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "data" / "real.json", tmp_path / "link.json"
    write_file(real, b"old")
    real.chmod(0o640)
    link.symlink_to(Path("data") / "real.json")
    inode = real.stat().st_ino
    write_file(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_ino != inode
    assert real.stat().st_mode & 0o777 == 0o640
    real.unlink()
    write_file(link, b"again")
    assert link.is_symlink()
    assert real.read_bytes() == b"again"
    assert sorted(os.listdir(tmp_path)) == ["data", "link.json"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(pipe.read_bytes)
        write_file(pipe, b"x" * 200_000)
        assert reading.result(10) == b"x" * 200_000
    assert pipe.is_fifo()


def test_standard_output_is_continued_also_where_it_is_a_file(tmp_path: Path) -> None:
    """Through a link of our own: a mistake here, run as root, would replace the machine's /dev/stdout."""
    link, file = tmp_path / "stdout", tmp_path / "out"
    link.symlink_to("/dev/fd/1")
    code = (
        "import sys; from pipebench.formats.files import write_file, is_standard_output as own;"
        "link, other = sys.argv[1:]; print('before'); write_file(link, b'data\\n');"
        "print('after', own(link), own(other))"
    )
    command = [sys.executable, "-c", code, str(link), str(tmp_path)]
    with file.open("wb") as out:
        subprocess.run(command, stdout=out, check=True)
    assert file.read_text() == "before\ndata\nafter True False\n"
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert piped.stdout == file.read_bytes()
    assert link.is_symlink()


def test_where_nothing_can_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"old")
    prepare_file(tmp_path / "new" / "file.json")
    prepare_file(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    prepare_file(tmp_path / "pipe")
    for target in (tmp_path, tmp_path / "plain" / "below", "/proc/x.json"):
        with pytest.raises(PipebenchError, match="cannot write '"):
            prepare_file(target)
    assert (tmp_path / "plain").read_bytes() == b"old"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
