"""A file of JSON lines that only grows; a torn end is cut off and kept, a damaged line is named and skipped."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from pipebench.bench.store.line import LineReader, Unread
from pipebench.bench.store.torn import cut_off
from pipebench.domain.errors import PipebenchError

T = TypeVar("T")
MOST_FILE_BYTES = 2**30


class Lines(Generic[T]):
    """The lines of one file. The caller holds the store's lock around every call. tell: takes notices."""

    def __init__(self, file: Path, kind: type[T], tell: Callable[[str], None]) -> None:
        self.file = file
        self._reader = LineReader(kind, str(file), tell)
        self._offset = 0

    def read(self, cut: bool) -> list[T]:
        """The values of the lines that were added since the last call.

        A torn end is never read; cut: it is moved to a file beside. Raises OSError, and PipebenchError for a
        file that is too large or became shorter.
        """
        found: list[T] = []
        with open(self.file, "rb") as file:
            size = self._size(file.fileno())
            offset = self._offset
            file.seek(offset)
            for line in file:
                value = self._reader.value(line, last=offset + len(line) >= size)
                if isinstance(value, Unread) and value.torn:
                    kept = cut_off(self.file, offset, line) if cut else None
                    self._reader.tell_torn(line, value.reason, kept)
                    break
                offset += len(line)
                if not isinstance(value, Unread):
                    found.append(value)
        self._offset = offset
        return found

    def append(self, value: T) -> None:
        """Add one line, on the disk when this returns.

        All that others added must have been read before, under the same lock. Raises OSError and
        PipebenchError; the file is then as it was.
        """
        line = self._reader.line(value)
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
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
        if size > MOST_FILE_BYTES:
            raise PipebenchError(
                f"{str(self.file)!r} has {size} bytes, at most {MOST_FILE_BYTES} are read", "start a new store"
            )
        if size < self._offset:
            raise PipebenchError(
                f"{str(self.file)!r} became shorter while it was in use", "lines are only ever added to it"
            )
        return size
