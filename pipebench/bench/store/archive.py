"""A packed store, read in place: nothing is unpacked, names and sizes are looked at before anything is read."""

import re
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

from pipebench.bench.store.line import LineReader, Unread
from pipebench.bench.store.manifest import MANIFEST, OBJECTS, ROWS, check_manifest
from pipebench.bench.store.objects import NAME
from pipebench.bench.store.stored import StoredRow
from pipebench.domain.errors import PipebenchError
from pipebench.formats.files import LARGEST_FILE_BYTES

MOST_ENTRIES = 200_000
MOST_TOTAL_BYTES = 2**32
MOST_ROWS_BYTES = 2**30
_NAMES = re.compile(rf"{re.escape(MANIFEST)}|{re.escape(ROWS)}|{OBJECTS}/{NAME.pattern}")
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class Archive:
    """The files of a packed store by name. Reads objects as ObjectReader."""

    def __init__(self, path: Path) -> None:
        """Raises PipebenchError: it is no zip, too large, or holds no store of a version that is read."""
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise PipebenchError(f"cannot read {str(path)!r}: {_reason(error)}") from None
        entries = self._zip.infolist()
        if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > MOST_TOTAL_BYTES:
            raise PipebenchError(
                f"{str(path)!r} holds too much: at most {MOST_ENTRIES} files and "
                f"{MOST_TOTAL_BYTES // 2**30} GiB in all are read"
            )
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self.others: list[str] = []
        for entry in entries:
            if not _NAMES.fullmatch(entry.filename):
                self.others.append(entry.filename)
            elif entry.filename in self._entries or entry.compress_type not in _WAYS or entry.flag_bits & 1:
                raise PipebenchError(
                    f"{str(path)!r}: {entry.filename} is there twice, encrypted or packed in an unknown way"
                )
            else:
                self._entries[entry.filename] = entry
        manifest = self._bytes(MANIFEST, LARGEST_FILE_BYTES)
        if manifest is None:
            raise PipebenchError(f"{str(path)!r} is not a packed store: it has no {MANIFEST}")
        check_manifest(manifest, str(path))

    def read(self, name: str) -> bytes | None:
        """The bytes of the object of that name, None when there is none."""
        return self._bytes(f"{OBJECTS}/{name}", LARGEST_FILE_BYTES)

    def rows(self, notices: list[str]) -> list[StoredRow]:
        """Every row in the order of the file; lines that are none are named in the notices."""
        reader = LineReader(StoredRow, f"{self.path}: {ROWS}", notices.append)
        found: list[StoredRow] = []
        for line in BytesIO(self._bytes(ROWS, MOST_ROWS_BYTES) or b""):
            value = reader.value(line, last=False)
            if not isinstance(value, Unread):
                found.append(value)
            elif value.torn:
                reader.tell_torn(line, value.reason, None)
        return found

    def _bytes(self, name: str, most: int) -> bytes | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        try:
            with self._zip.open(entry) as file:
                data = file.read(most + 1)
        except _BROKEN as error:
            raise PipebenchError(f"{str(self.path)!r}: {name} cannot be read: {_reason(error)}") from None
        if len(data) > most:
            raise PipebenchError(f"{str(self.path)!r}: {name} is larger than {most // 2**20} MiB")
        return data


def _reason(error: Exception) -> str:
    return ((isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__).lower()
