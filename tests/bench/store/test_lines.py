"""Lines: only added to, a torn end cut off and kept, a damaged line named and skipped."""

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.store import lines as one_line
from pipebench.bench.store.lines import Lines
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value


class Entry(Value, frozen=True, kw_only=True):
    number: int
    text: str = ""
    anything: Any = None


class File:
    """A file of lines, opened as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rows.jsonl"
        self.path.touch()
        self.notices: list[str] = []

    def open(self) -> Lines[Entry]:
        return Lines(self.path, Entry, self.notices.append)

    def fill(self, entries: list[Entry]) -> list[int]:
        """Add the entries; where each line ends."""
        lines, ends = self.open(), []
        lines.read(cut=True)
        for entry in entries:
            lines.append(entry)
            ends.append(self.path.stat().st_size)
        return ends


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def entries(count: int) -> list[Entry]:
    return [Entry(number=i, text="line\nwith ends\r\n and \u2028 and é" * i) for i in range(count)]


@given(st.lists(st.text(), max_size=6))
def test_what_is_appended_is_read(texts: list[str]) -> None:
    written = [Entry(number=i, text=text) for i, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        file = File(Path(folder))
        file.fill(written)
        assert file.open().read(cut=True) == written
        assert file.notices == []


def test_cut_at_every_byte_everything_before_is_kept(file: File) -> None:
    ends = file.fill(entries(4))
    whole = file.path.read_bytes()
    for length in range(len(whole) + 1):
        folder = file.path.parent / str(length)
        folder.mkdir()
        cut = File(folder)
        cut.path.write_bytes(whole[:length])
        complete = sum(end <= length for end in ends)
        torn = whole[ends[complete - 1] if complete else 0 : length]
        lines = cut.open()
        assert lines.read(cut=True) == entries(4)[:complete]
        lines.append(Entry(number=99))
        assert cut.open().read(cut=True) == [*entries(4)[:complete], Entry(number=99)]
        kept = [path.read_bytes() for path in folder.glob("torn-*.txt")]
        assert kept == ([torn] if torn else [])
        assert len(cut.notices) == len(kept)
        assert all("torn-1.txt" in notice and f"{len(torn)} bytes" in notice for notice in cut.notices)


@given(st.binary(max_size=40).filter(lambda tail: b"{" not in tail))
def test_any_bytes_at_the_end_lose_nothing_before(tail: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = File(Path(folder))
        file.fill(entries(2))
        with open(file.path, "ab") as opened:
            opened.write(tail)
        assert file.open().read(cut=True) == entries(2)
        lines = file.open()
        lines.read(cut=True)
        lines.append(Entry(number=7))
        assert file.open().read(cut=True) == [*entries(2), Entry(number=7)]


@pytest.mark.parametrize("last", [b'{"number":4,"te\n', b"\0\0\0\n", b"\n"])
def test_a_last_line_that_is_no_json_is_torn(file: File, last: bytes) -> None:
    file.fill(entries(2))
    before = file.path.read_bytes()
    file.path.write_bytes(before + last)
    assert file.open().read(cut=True) == entries(2)
    assert file.path.read_bytes() == before
    assert (file.path.parent / "torn-1.txt").read_bytes() == last
    assert "the last line is torn" in file.notices[0]


def test_every_torn_end_has_a_file_of_its_own(file: File) -> None:
    for number in range(3):
        with open(file.path, "ab") as opened:
            opened.write(b'{"number":' + b"1" * number)
        file.open().read(cut=True)
    kept = sorted(path.name for path in file.path.parent.glob("torn-*.txt"))
    assert kept == ["torn-1.txt", "torn-2.txt", "torn-3.txt"]
    assert (file.path.parent / "torn-3.txt").read_bytes() == b'{"number":11'
    assert file.path.read_bytes() == b""


def test_a_torn_end_is_left_alone_unless_it_may_be_cut(file: File) -> None:
    file.fill(entries(2))
    before = file.path.read_bytes() + b'{"numb'
    file.path.write_bytes(before)
    lines = file.open()
    assert lines.read(cut=False) == entries(2)
    assert "6 bytes are left out" in file.notices[0]
    assert file.path.read_bytes() == before
    with open(file.path, "ab") as opened:
        whole = one_line.with_checksum(b'{"number":5}\n')
        opened.write(whole.removeprefix(b'{"numb'))  # its writer was not dead, only not done
    assert lines.read(cut=False) == [Entry(number=5)]


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b'{"number": 1, "te\n', "JSON"),
        (b"\n", "truncated"),
        (b"\xff\xfe\x00\n", "malformed"),
        (b'{"number": "one"}\n', "Expected `int`, got `str`"),
        (b'{"number": 1, "later": 2}\n', "newer pipebench"),
        (b'{"number": 1, "anything": ' + b"[" * 100_000 + b"\n", "recursion"),
        (b'{"number": ' + b"9" * 5000 + b"}\n", ""),
    ],
)
def test_a_damaged_line_in_the_middle_is_named_and_skipped(file: File, damaged: bytes, reason: str) -> None:
    file.fill(entries(2))
    with open(file.path, "ab") as opened:
        opened.write(damaged)
    with open(file.path, "ab") as opened:
        opened.write(one_line.with_checksum(b'{"number":3}\n'))
    before = file.path.read_bytes()
    assert file.open().read(cut=True) == [*entries(2), Entry(number=3)]
    assert len(file.notices) == 1
    assert "line 3 is damaged" in file.notices[0]
    assert reason.lower() in file.notices[0].lower()
    assert file.path.read_bytes() == before
    assert list(file.path.parent.glob("torn-*.txt")) == []


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ((b'"number":0', b'"number":7'), "it was changed after it was written"),
        ((b'"checksum":"', b'"checksum":"0'), "unknown field"),
    ],
)
def test_a_changed_line_is_named_and_skipped(file: File, edit: tuple[bytes, bytes], reason: str) -> None:
    file.fill(entries(3))
    file.path.write_bytes(file.path.read_bytes().replace(*edit, 1))
    assert file.open().read(cut=True) == entries(3)[1:]
    assert "line 1 is damaged" in file.notices[0]
    assert reason in file.notices[0]


def test_lines_of_an_older_store_have_no_checksum_and_none_may_follow_one_that_has(file: File) -> None:
    file.path.write_bytes(b'{"number":1}\n')
    assert file.open().read(cut=True) == [Entry(number=1)]
    file.fill(entries(1))
    with open(file.path, "ab") as opened:
        opened.write(b'{"number":2}\n')
    assert file.open().read(cut=True) == [Entry(number=1), *entries(1)]
    assert "line 3 is damaged and skipped: it has no checksum" in file.notices[0]


def test_a_last_line_of_another_type_is_no_torn_line(file: File) -> None:
    file.path.write_bytes(b'{"number":3,"later":1}\n')
    assert file.open().read(cut=True) == []
    assert "line 1 is damaged" in file.notices[0]
    assert file.path.read_bytes() == b'{"number":3,"later":1}\n'


def test_many_damaged_lines_give_few_notices(file: File) -> None:
    file.path.write_bytes(b"x\n" * 1000 + b'{"number":3}\n')
    assert file.open().read(cut=True) == [Entry(number=3)]
    assert len(file.notices) == one_line.MOST_NOTICES + 1


def test_a_line_beyond_the_bound_is_skipped_and_not_written(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    file.fill([Entry(number=1, text="x" * 200), Entry(number=2)])
    monkeypatch.setattr(one_line, "MOST_LINE_BYTES", 100)
    lines = file.open()
    assert lines.read(cut=True) == [Entry(number=2)]
    with pytest.raises(PipebenchError, match="at most 100"):
        lines.append(Entry(number=3, text="x" * 200))


def test_lines_of_another_process_are_read_once(file: File) -> None:
    ours, theirs = file.open(), file.open()
    assert ours.read(cut=True) == theirs.read(cut=True) == []
    ours.append(Entry(number=1))
    assert theirs.read(cut=True) == [Entry(number=1)]
    theirs.append(Entry(number=2))
    assert ours.read(cut=True) == [Entry(number=2)]
    assert ours.read(cut=True) == []


def test_a_file_that_became_shorter_is_an_error(file: File) -> None:
    lines = file.open()
    lines.append(Entry(number=1))
    file.path.write_bytes(b"")
    with pytest.raises(PipebenchError, match="became shorter"):
        lines.read(cut=True)


@pytest.mark.parametrize("written", [0, 5])
def test_a_full_disk_leaves_the_file_as_it_was(file: File, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    file.fill(entries(3))
    before = file.path.read_bytes()
    lines = file.open()
    lines.read(cut=True)
    real, calls = os.write, []

    def full(handle: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1 and written:
            return real(handle, bytes(data)[:written])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        lines.append(Entry(number=9))
    monkeypatch.undo()
    assert file.path.read_bytes() == before
    lines.append(Entry(number=9))
    assert file.open().read(cut=True) == [*entries(3), Entry(number=9)]


def test_a_short_write_is_continued(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data)[:3]))
    file.fill(entries(2))
    monkeypatch.undo()
    assert file.open().read(cut=True) == entries(2)


def test_each_line_is_on_the_disk_before_append_returns(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = file.open()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    lines.append(Entry(number=1))
    assert synced == [len(one_line.with_checksum(msgspec.json.encode(Entry(number=1)) + b"\n"))]


def test_what_cannot_be_read_back_is_not_written(file: File) -> None:
    lines = file.open()
    with pytest.raises(PipebenchError, match="cannot be stored"):
        lines.append(Entry(number=1, text="\ud800"))
    with pytest.raises(PipebenchError, match="cannot be stored"):
        lines.append(Entry(number="one"))  # type: ignore[arg-type]
    assert file.path.read_bytes() == b""
