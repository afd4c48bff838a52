"""A file of JSON lines that only grows. A torn end is cut off and kept; a damaged line is named and skipped."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import msgspec

from pipebench.documents.decoding import require_unique_keys
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MIB, MOST_DAMAGED_LINES, MOST_LINE_BYTES, MOST_ROWS_BYTES
from pipebench.system.files import open_regular


def cut_off(file: Path, size: int) -> Path:
    """Cut the file down to its first `size` bytes.

    The bytes behind them are on the disk in the file that is returned.
    """
    with open(file, "rb") as opened:
        opened.seek(size)
        kept = _keep(file.parent, opened)
    with open(file, "r+b") as opened:
        opened.truncate(size)
        os.fsync(opened.fileno())
    return kept


def sync_folder(folder: Path) -> None:
    """Names in the folder are on the disk when this returns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep(folder: Path, torn: BinaryIO) -> Path:
    number = 1
    while (kept := folder / f"torn-{number}.txt").exists():
        number += 1
    try:
        with open(kept, "xb") as file:
            shutil.copyfileobj(torn, file)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise
    except BaseException:
        kept.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return kept


LineValue = TypeVar("LineValue")
MOST_NOTICES = 20


CHECKSUM_DIGITS = 16
_CHECKSUM = re.compile(rb',"checksum":"([0-9a-f]{%d})"\}\n\Z' % CHECKSUM_DIGITS)
_CHECKSUM_BYTES = len(b',"checksum":""}\n') + CHECKSUM_DIGITS


def _find_checksum(line: bytes) -> re.Match[bytes] | None:
    """The checksum at the end of a line, which is looked for nowhere else."""
    return _CHECKSUM.match(line, max(0, len(line) - _CHECKSUM_BYTES))


def checked_line(line: bytes) -> bytes:
    """A line as it is where it has a digest, which whoever read it has compared; else with one."""
    return line if _find_checksum(line) is not None else with_checksum(line)


def with_checksum(line: bytes) -> bytes:
    """A line with the digest of its content as the last key, in place of one that it has.

    It tells of damage and edits; it is no signature.
    """
    found = _find_checksum(line)
    content = line[: found.start()] + b"}" if found else line.removesuffix(b"\n")
    return content[:-1] + b',"checksum":"' + _checksum(content) + b'"}\n'


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest()[:CHECKSUM_DIGITS].encode()


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a line has no value. torn: whether the line was never finished."""

    reason: str
    torn: bool = False


class LineReader(Generic[LineValue]):
    """Lines in order.

    source: the name of the file in notices.
    tell: receives the notices.
    check: raises InvalidValue for a value that cannot be; its line is damaged.
    remedy: what to do about a damaged line, which is an error then; None: it is skipped and told.
    number: number of the last line read.
    """

    def __init__(
        self,
        kind: type[LineValue],
        source: str,
        tell: Callable[[str], None],
        check: Callable[[LineValue], None] | None = None,
        remedy: str | None = None,
    ) -> None:
        self._remedy = remedy
        self._decoder = msgspec.json.Decoder(kind)
        self._check = check
        self._source = source
        self._tell = tell
        self._damaged = 0
        self._checked = False
        self.number = 0

    def value(self, line: bytes, last: bool) -> LineValue | Unread:
        """The value of the next line. A last line without newline, or without valid JSON, is torn.

        A damaged line gives a notice and is counted. A torn line is not: it is no line yet.
        """
        read = self._decode(line, last)
        if isinstance(read, Unread) and read.torn:
            return read
        self.number += 1
        if isinstance(read, Unread):
            self._tell_damaged(read.reason)
        return read

    def line(self, value: LineValue) -> bytes:
        """The line of a value, proven to be readable. Raises PipebenchError when it is not."""
        try:
            line = msgspec.json.encode(value) + b"\n"
            self._decoder.decode(line)
            line = with_checksum(line)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise PipebenchError(f"a line cannot be stored: {error}") from None
        if len(line) > MOST_LINE_BYTES:
            raise PipebenchError(f"a line of {len(line)} bytes cannot be stored, at most {MOST_LINE_BYTES}")
        return line

    def tell_torn(self, line_bytes: int, reason: str, kept: Path | None) -> None:
        """Say what became of a torn line: kept in a file, or left where it is."""
        fate = f"were moved to {kept.name}" if kept else "are left out"
        self._tell(f"{self._source}: the last line is torn ({reason}), its {line_bytes} bytes {fate}")

    def _decode(self, line: bytes, last: bool) -> LineValue | Unread:
        if not line.endswith(b"\n"):
            return Unread("it has no end", torn=True)
        if len(line) > MOST_LINE_BYTES:
            return Unread(f"it has more than {MOST_LINE_BYTES} bytes, no longer one is read")
        found = _find_checksum(line)
        if found is not None:
            self._checked = True
            line = line[: found.start()] + b"}\n"
            if _checksum(line[:-1]) != found[1]:
                return Unread("it was changed after it was written")
        try:
            value = self._decoder.decode(line)
            if self._check is not None:
                self._check(value)
            if msgspec.json.encode(value) != line[:-1]:  # what was written here has each key once
                require_unique_keys(line, f"line {self.number + 1}")
        except PipebenchError as error:
            return Unread(error.message)
        except msgspec.ValidationError as error:
            newer = "; it may come from a newer pipebench" if "unknown field" in str(error) else ""
            return Unread(f"{error}{newer}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Unread(str(error), torn=last)
        if found is None and (self._checked or self._remedy is not None):
            others = ", other than the lines before it" if self._checked else ""
            return Unread(f"it has no checksum{others}")
        return value

    def _tell_damaged(self, reason: str) -> None:
        if self._remedy is not None:
            raise PipebenchError(f"{self._source}: line {self.number} is damaged: {reason}", self._remedy)
        self._damaged += 1
        if self._damaged <= MOST_NOTICES:
            self._tell(f"{self._source}: line {self.number} is damaged and skipped: {reason}")
        elif self._damaged == MOST_NOTICES + 1:
            self._tell(f"{self._source}: more damaged lines are skipped without a word")
        elif self._damaged > MOST_DAMAGED_LINES:
            raise PipebenchError(
                f"{self._source}: more than {MOST_DAMAGED_LINES} lines are damaged, no more are skipped",
                "is it the file of a store?",
            )


T = TypeVar("T")


class PlacedLine(NamedTuple, Generic[T]):
    """A value, and where in the file its line is: its first byte, and how many they are."""

    value: T
    start: int
    line_bytes: int


def bounded_lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The lines of a file and how many bytes each has; of one over MOST_LINE_BYTES the start and the end only."""
    while line := file.readline(MOST_LINE_BYTES + 1):
        size, part = len(line), line
        while not part.endswith(b"\n") and (part := file.readline(MIB)):
            size += len(part)
        yield line if size == len(line) else line + part[-1:], size


class Lines(Generic[T]):
    """The lines of one file. The caller holds the store's lock around every call.

    tell, check, remedy: as of LineReader.
    """

    def __init__(
        self,
        file: Path,
        kind: type[T],
        tell: Callable[[str], None],
        check: Callable[[T], None] | None = None,
        remedy: str | None = None,
    ) -> None:
        self.file = file
        self._reader = LineReader(kind, str(file), tell, check, remedy)
        self._offset = 0

    def read(self, cut: bool) -> list[T]:
        """The values of the lines that were added since the last call.

        A torn end is never read; cut: it is moved to a file beside. Raises OSError, and PipebenchError for a
        file that is too large or became shorter.
        """
        return [placed.value for placed in self.scan(cut)]

    def scan(self, cut: bool) -> Iterator["PlacedLine[T]"]:
        """The same, one after the other with their places; the caller takes all of them."""
        with open_regular(self.file) as file:
            size = self._size(file.fileno())
            file.seek(self._offset)
            for line, line_bytes in bounded_lines(file):
                start = self._offset
                value = self._reader.value(line, last=start + line_bytes >= size)
                if isinstance(value, Unread) and value.torn:
                    kept = cut_off(self.file, start) if cut else None
                    self._reader.tell_torn(line_bytes, value.reason, kept)
                    break
                self._offset += line_bytes
                if not isinstance(value, Unread):
                    yield PlacedLine(value, start, line_bytes)

    def append(self, value: T) -> None:
        """Add one line; it is on the disk when this returns.

        The caller must have read all lines that others added, under the same lock.
        Raises OSError and PipebenchError; the file is then unchanged.
        """
        line = self._reader.line(value)
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(handle, left) :]
                os.fsync(handle)
            except OSError:
                with suppress(OSError):  # where even this fails, the next one to open the store cuts the end off
                    os.ftruncate(handle, self._offset)
                raise
        finally:
            os.close(handle)
        self._offset += len(line)
        self._reader.number += 1

    def _size(self, handle: int) -> int:
        size = os.fstat(handle).st_size
        if size > MOST_ROWS_BYTES:
            raise PipebenchError(
                f"{str(self.file)!r} has {size} bytes, at most {MOST_ROWS_BYTES} are read", "start a new store"
            )
        if size < self._offset:
            raise PipebenchError(
                f"{str(self.file)!r} became shorter while it was in use", "lines are only ever added to it"
            )
        return size
