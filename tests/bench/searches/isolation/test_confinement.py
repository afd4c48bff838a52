"""What a confined process finds of terminals, of the processes above it, and of what is hidden from it."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pipebench.bench.searches.isolation.confinement import can_leave_network, confine, landlock_version

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cage is Linux's")
apart = pytest.mark.skipif(sys.platform != "linux" or not can_leave_network(), reason="no namespaces here")


def said(
    tmp_path: Path,
    work: Callable[[], object],
    hidden: tuple[str, ...] = (),
    network: bool = False,
    memory_bytes: int = 0,
) -> str:
    """What the work gives in a confined child, or the name of the error that it raises."""
    own = tmp_path / "own"
    own.mkdir()
    child = os.fork()
    if child == 0:
        confine([str(own)], network, hidden, memory_bytes)
        try:
            answer = str(work())
        except BaseException as error:
            answer = type(error).__name__
        (own / "answer").write_text(answer)
        os._exit(0)
    os.waitpid(child, 0)
    return (own / "answer").read_text()


@pytest.mark.skipif(landlock_version() < 5, reason="Linux 6.10 and later")
def test_no_terminal_is_controlled(tmp_path: Path) -> None:
    """Its size and its modes stay when a process has ended; setting them asks for no right to write."""
    leader, terminal = pty.openpty()
    path = os.ttyname(terminal)

    def work() -> object:
        opened = os.open(path, os.O_RDONLY | os.O_NOCTTY)
        return fcntl.ioctl(opened, termios.TIOCSWINSZ, struct.pack("HHHH", 7, 7, 7, 7))

    assert said(tmp_path, work, network=True) == "PermissionError"
    os.close(leader)
    os.close(terminal)


@apart
def test_what_is_typed_at_a_terminal_is_read_by_none(tmp_path: Path) -> None:
    leader, terminal = pty.openpty()
    path = os.ttyname(terminal)
    assert said(tmp_path, lambda: os.open(path, os.O_RDONLY | os.O_NOCTTY)) == "FileNotFoundError"
    os.close(leader)
    os.close(terminal)


@apart
def test_no_command_line_above_its_parent_is_read(tmp_path: Path) -> None:
    above = os.getppid()
    assert said(tmp_path, lambda: Path(f"/proc/{above}/cmdline").read_bytes()) == "FileNotFoundError"
    assert Path(f"/proc/{above}/cmdline").read_bytes()


@apart
@pytest.mark.parametrize("name", ["cmdline", "stat", "status"])
def test_nothing_is_read_of_a_thread_of_its_parent(tmp_path: Path, name: str) -> None:
    """The list of /proc has no threads, but each has a folder there; what a parent's counters say, remains."""
    enough = threading.Event()
    thread = threading.Thread(target=enough.wait)
    thread.start()
    try:
        for each in (os.getpid(), thread.native_id):
            own = tmp_path / str(each)
            own.mkdir()
            assert Path(f"/proc/{each}/{name}").read_bytes()
            assert said(own, Path(f"/proc/{each}/{name}").read_bytes) == "FileNotFoundError"
    finally:
        enough.set()
        thread.join()


@apart
def test_shared_memory_is_as_large_as_the_limit_says(tmp_path: Path) -> None:
    def written() -> int:
        return Path("/dev/shm/large").write_bytes(bytes(2**21))

    (tmp_path / "less").mkdir()
    assert said(tmp_path / "less", written, memory_bytes=2**20) == "OSError"
    (tmp_path / "enough").mkdir()
    assert said(tmp_path / "enough", written, memory_bytes=2**22) == str(2**21)


@apart
def test_what_is_hidden_is_empty_for_it_alone(tmp_path: Path) -> None:
    folder, file = tmp_path / "objects", tmp_path / "rows.jsonl"
    folder.mkdir()
    (folder / "plan.json").write_text("the best plan")
    file.write_text("a row")
    missing = tmp_path / "missing"
    found = said(
        tmp_path, lambda: (os.listdir(folder), file.read_text()), hidden=(str(folder), str(file), str(missing))
    )
    assert found == "([], '')"
    assert (os.listdir(folder), file.read_text()) == (["plan.json"], "a row")
