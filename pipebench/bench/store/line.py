"""One JSON line as a value of a type: bounded, checked, and what is wrong with it said once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from pipebench.domain.errors import PipebenchError

T = TypeVar("T")
MOST_LINE_BYTES = 2**24
MOST_NOTICES = 20


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a line has no value. torn: the line was never finished."""

    reason: str
    torn: bool = False


class LineReader(Generic[T]):
    """Lines in order. source: names the file in notices; tell: takes them; number: of the last line read."""

    def __init__(self, kind: type[T], source: str, tell: Callable[[str], None]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._source = source
        self._tell = tell
        self._damaged = 0
        self.number = 0

    def value(self, line: bytes, last: bool) -> T | Unread:
        """The value of the next line. An end without newline is torn, and so is a last line that is no JSON.

        A damaged line is told of and counted, a torn one is not: it is no line yet.
        """
        read = self._decoded(line, last)
        if isinstance(read, Unread) and read.torn:
            return read
        self.number += 1
        if isinstance(read, Unread):
            self._tell_damaged(read.reason)
        return read

    def line(self, value: T) -> bytes:
        """The line of a value, proven to be readable. Raises PipebenchError when it is not."""
        try:
            line = msgspec.json.encode(value) + b"\n"
            self._decoder.decode(line)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise PipebenchError(f"a row cannot be stored: {error}") from None
        if len(line) > MOST_LINE_BYTES:
            raise PipebenchError(f"a row of {len(line)} bytes cannot be stored, at most {MOST_LINE_BYTES}")
        return line

    def tell_torn(self, line: bytes, reason: str, kept: Path | None) -> None:
        """Say what became of a torn line: kept in a file, or left where it is."""
        fate = f"were moved to {kept.name}" if kept else "are left out"
        self._tell(f"{self._source}: the last line is torn ({reason}), its {len(line)} bytes {fate}")

    def _decoded(self, line: bytes, last: bool) -> T | Unread:
        if not line.endswith(b"\n"):
            return Unread("it has no end", torn=True)
        if len(line) > MOST_LINE_BYTES:
            return Unread(f"it has {len(line)} bytes, at most {MOST_LINE_BYTES} are read")
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError as error:
            newer = "; it may come from a newer pipebench" if "unknown field" in str(error) else ""
            return Unread(f"{error}{newer}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Unread(str(error), torn=last)

    def _tell_damaged(self, reason: str) -> None:
        self._damaged += 1
        if self._damaged <= MOST_NOTICES:
            self._tell(f"{self._source}: line {self.number} is damaged and skipped: {reason}")
        elif self._damaged == MOST_NOTICES + 1:
            self._tell(f"{self._source}: more damaged lines are skipped without a word")
