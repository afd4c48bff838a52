"""Packed stores: a store as one zip, the same bytes each time, and such a zip read in place."""

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec.structs import replace

from pipebench.bench.redaction import Redaction
from pipebench.bench.store.access import storing
from pipebench.bench.store.folder import ROWS, TRIALS, Store
from pipebench.bench.store.journal import MANIFEST, OBJECTS, check_manifest
from pipebench.bench.store.keys import TrialInputs, trial_key
from pipebench.bench.store.lines import LineReader, Unread, bounded_lines, with_checksum
from pipebench.bench.store.objects import NAME, PLAN, PROBLEM, SCHEDULE, SCRIPT, object_name, references
from pipebench.bench.store.stored_rows import SharedParts, StoredRow, require_possible_row
from pipebench.documents.decoding import count_elements
from pipebench.documents.document import encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import (
    LARGEST_DIRECTORY_BYTES,
    LARGEST_FILE_BYTES,
    MIB,
    MOST_MEMBERS,
    MOST_MEMBERS_BYTES,
    MOST_PACKED_ELEMENTS,
    MOST_PACKED_ROWS,
    MOST_PACKED_ROWS_BYTES,
)
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Provenance
from pipebench.system.files import open_regular, read_file
from pipebench.system.scratch import draft_beside, hold

_NAMES = re.compile(rf"{re.escape(MANIFEST)}|{re.escape(ROWS)}|{OBJECTS}/{NAME.pattern}")
PACKED = ".zip"
"""By the end of its name a packed store is known from other files."""
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class Archive:
    """The files of a packed store by name. Reads objects as ObjectReader."""

    def __init__(self, path: Path) -> None:
        """Raises PipebenchError: it is no zip, too large, or holds no store of a version that is read."""
        self.path = path
        try:
            file = open_regular(path)
            _require_directory(file, path)
            self._zip = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise PipebenchError(f"cannot read {str(path)!r}: {_reason(error)}") from None
        entries = self._zip.infolist()
        if len(entries) > MOST_MEMBERS or sum(entry.file_size for entry in entries) > MOST_MEMBERS_BYTES:
            raise _excess_error(path)
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
        check_manifest(manifest, str(path), TRIALS)

    def read(self, name: str) -> bytes | None:
        """The bytes of the object of that name, None when there is none."""
        return self._bytes(f"{OBJECTS}/{name}", LARGEST_FILE_BYTES)

    def rows(self, notices: list[str]) -> list[StoredRow]:
        """Every row in the order of the file; lines that are none are named in the notices."""
        reader = LineReader(StoredRow, f"{self.path}: {ROWS}", notices.append, require_possible_row)
        found: list[StoredRow] = []
        parts = SharedParts()
        for line, line_bytes in self._row_lines():
            value = reader.value(line, last=False)
            if not isinstance(value, Unread):
                parts.share(value)
                found.append(value)
                if len(found) > MOST_PACKED_ROWS:
                    raise PipebenchError(
                        f"{str(self.path)!r} holds too much: at most {MOST_PACKED_ROWS} rows are read"
                    )
            elif value.torn:
                reader.tell_torn(line_bytes, value.reason, None)
        return found

    def _row_lines(self) -> Iterator[tuple[bytes, int]]:
        """The lines of the rows and their sizes, unpacked one after the other."""
        if ROWS not in self._entries:
            return
        where = f"{str(self.path)!r}: {ROWS}"
        size = elements = 0
        try:
            with self._zip.open(self._entries[ROWS]) as file:
                for line, line_bytes in bounded_lines(BufferedReader(cast(RawIOBase, file), MIB)):
                    size, elements = size + line_bytes, elements + count_elements(line)
                    if size > MOST_PACKED_ROWS_BYTES or elements > MOST_PACKED_ELEMENTS:
                        raise PipebenchError(
                            f"{where} is too large: at most {MOST_PACKED_ROWS_BYTES // MIB} MiB and "
                            f"{MOST_PACKED_ELEMENTS} elements are read"
                        )
                    yield line, line_bytes
        except _BROKEN as error:
            raise PipebenchError(f"{where} cannot be read: {_reason(error)}") from None

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
            raise PipebenchError(f"{str(self.path)!r}: {name} is larger than {most // MIB} MiB")
        return data


def _require_directory(file: BinaryIO, path: Path) -> None:
    """Raise PipebenchError where the list of files is longer than is read: it becomes objects all at once."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
    end = file.read(_END_BYTES)
    for mark, place, width in ((b"PK\5\6", 12, 4), (b"PK\6\6", 40, 8)):
        at = end.rfind(mark)
        size = int.from_bytes(end[at + place : at + place + width], "little") if at >= 0 else 0
        if LARGEST_DIRECTORY_BYTES < size < 2 ** (8 * width) - 1:
            raise _excess_error(path)


_END_BYTES = 2**16 + 100
"""The end of a zip: the sizes of its list of files, and a comment."""


def _excess_error(path: Path) -> PipebenchError:
    return PipebenchError(
        f"{str(path)!r} holds too much: at most {MOST_MEMBERS} files and {MOST_MEMBERS_BYTES // 2**30} GiB in all "
        "are read"
    )


def _reason(error: Exception) -> str:
    return ((isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__).lower()


EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip: the earliest that a zip can hold."""
UNIX, READABLE, LEVEL = 3, 0o100644, 6


@dataclass(frozen=True, slots=True)
class PackSummary:
    """The content of a zip: number of rows and objects, and bytes of the zip.

    notices: what is missing or damaged.
    """

    rows: int
    objects: int
    bytes: int
    notices: tuple[str, ...]


def pack(
    store_path: str | Path,
    zip_path: str | Path,
    with_output: bool = False,
    tell: Callable[[Collection[str]], object] = len,
) -> PackSummary:
    """Write a zip with the rows of a store and all objects that they refer to; scripts are included as text.

    The store is only read. Damaged and missing objects are left out, with a notice.
    Absolute paths, command lines beyond the name of a program and printed output are left out, of rows and of the
    provenance of profiles. with_output: they go into the zip.
    tell: gets a line for each of them, all at once, before the zip is written.
    Raises PipebenchError when there is no store, the name does not end in PACKED, the zip would lie inside the
    store, the content is too large for a zip, or the zip cannot be written (none is left then).
    """
    target = Path(zip_path)
    if os.path.isdir(target):
        raise PipebenchError(f"{str(target)!r} is a folder, not a file", "give a name such as results.zip")
    if target.resolve().is_relative_to(Path(store_path).resolve()):
        raise PipebenchError(f"{str(target)!r} is inside the store", "give a file outside it")
    if target.suffix != PACKED:
        raise PipebenchError(f"a packed store is a zip, not {str(target)!r}", f"end it in {PACKED}")
    store = Store.open(store_path, create=False, writable=False)
    rows = store.rows()
    redaction = Redaction(stored.row for stored in rows)
    passed = _Passed(store, rows, redaction, with_output)
    tell(redaction.found)
    beside = draft_beside(target)
    if len(rows) > MOST_PACKED_ROWS:
        raise PipebenchError(
            f"the store is too large for one zip: {len(rows)} rows, at most {MOST_PACKED_ROWS} are packed",
            "compare in several smaller stores",
        )
    with storing(target, "zip"):
        try:
            count = _write(beside, passed.files())
            size = beside.stat().st_size
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    return PackSummary(len(rows), count - 2, size, tuple(store.notices))


def _write(file: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write the zip, on the disk when this returns; the number of its files."""
    count = total = 0
    with open(file, "xb") as opened:
        hold(opened.fileno())
        with zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            for name, data in files:
                count, total = count + 1, total + len(data)
                too_large = name == ROWS and (
                    len(data) > MOST_PACKED_ROWS_BYTES or count_elements(data) > MOST_PACKED_ELEMENTS
                )
                if too_large or count > MOST_MEMBERS or total > MOST_MEMBERS_BYTES:
                    raise PipebenchError(
                        f"the store is too large for one zip: at most {MOST_MEMBERS} files, "
                        f"{MOST_PACKED_ROWS_BYTES // MIB} MiB of rows and {MOST_MEMBERS_BYTES // 2**30} GiB",
                        "compare in several smaller stores",
                    )
                entry = zipfile.ZipInfo(name, EPOCH)
                entry.compress_type, entry.create_system, entry.external_attr = (
                    zipfile.ZIP_DEFLATED,
                    UNIX,
                    READABLE << 16,
                )
                archive.writestr(entry, data, compresslevel=LEVEL)
        opened.flush()
        os.fsync(opened.fileno())
    return count


class _Passed:
    """What goes into the zip. All is looked at beforehand, so that what it tells can be told first."""

    def __init__(self, store: Store, rows: list[StoredRow], redaction: Redaction, with_output: bool) -> None:
        self._store = store
        self._objects = {
            object_name(kind, identity): (kind, identity)
            for stored in rows
            for kind, identity in references(stored)
        }
        redacted = [_redacted_row(stored, redaction) for stored in rows]
        origins = {
            identity: self._origin(identity, redaction)
            for kind, identity in self._objects.values()
            if kind == PROBLEM
        }
        self._rows = rows if with_output else redacted
        self._origins = {} if with_output else origins

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of every file, by name."""
        for name, (kind, identity) in sorted(self._objects.items()):
            try:
                yield f"{OBJECTS}/{name}", self._verified_bytes(kind, identity)
            except PipebenchError as error:
                self._store.notices.append(f"left out: {error.message}")
        yield ROWS, b"".join(map(_line, self._rows))
        yield MANIFEST, read_file(self._store.path / MANIFEST)

    def _origin(self, identity: str, redaction: Redaction) -> Provenance | None:
        """The provenance of a problem's profile as it is passed on, None where it is as it was."""
        try:
            was = self._store.problem(identity).profile.provenance
        except PipebenchError:
            return None  # its bytes are left out, with a notice
        now = msgspec.convert(redaction.strings(was), Provenance)
        return None if now == was else now

    def _verified_bytes(self, kind: str, identity: str) -> bytes:
        """The bytes of an object whose content has its hash, which does not cover provenance."""
        store, origin = self._store, self._origins.get(identity)
        read = {PROBLEM: store.problem, PLAN: store.plan, SCHEDULE: store.schedule, SCRIPT: store.script}
        value = read[kind](identity)
        if kind != PROBLEM or origin is None:
            return store.bytes_of(kind, identity)
        assert isinstance(value, Problem)
        return encode(PROBLEM, replace(value, profile=replace(value.profile, provenance=origin))) + b"\n"


def _line(stored: StoredRow) -> bytes:
    return with_checksum(msgspec.json.encode(stored) + b"\n")


def _redacted_row(stored: StoredRow, redaction: Redaction) -> StoredRow:
    """The line as it is passed on. Where its inputs name what is left out, they get another key."""
    row, was = redaction.row(stored.row), stored.inputs
    inputs = msgspec.convert(redaction.strings(was), TrialInputs)
    if stored.planner_kind in ("program", "script"):
        inputs = replace(inputs, planner=replace(was.planner, name=row.planner, options={}))
    key = stored.key if inputs == was else trial_key(inputs)
    return replace(
        stored,
        key=key,
        planner=row.planner,
        scheduler=None if stored.scheduler is None else redaction.text(stored.scheduler),
        executors=tuple(map(redaction.text, stored.executors)),
        inputs=inputs,
        row=replace(row, key=key),
    )
