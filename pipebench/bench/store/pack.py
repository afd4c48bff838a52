"""Pack a store into one zip that can be passed on: the same store gives the same bytes."""

import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipebench.bench.store.archive import MOST_ENTRIES, MOST_TOTAL_BYTES
from pipebench.bench.store.folder import Store
from pipebench.bench.store.manifest import MANIFEST, OBJECTS, ROWS
from pipebench.bench.store.objects import PLAN, PROBLEM, SCHEDULE, SCRIPT, object_name, references
from pipebench.bench.store.stored import StoredRow
from pipebench.bench.store.trouble import storing
from pipebench.domain.errors import PipebenchError
from pipebench.formats.files import read_file

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip: the earliest that a zip can hold."""
UNIX, READABLE, LEVEL = 3, 0o100644, 6


@dataclass(frozen=True, slots=True)
class Packed:
    """What went into a zip: rows, objects, bytes of the zip; notices name what is missing or damaged."""

    rows: int
    objects: int
    bytes: int
    notices: tuple[str, ...]


def pack(store_path: str | Path, zip_path: str | Path) -> Packed:
    """Write a zip with the rows of a store and all that they refer to; scripts as text to look at.

    The store is only read. Damaged and missing objects are left out with a notice. Raises PipebenchError: no
    store, a zip inside the store, too much for one zip, or a zip that cannot be written (none is left then).
    """
    store, target = Store.open(store_path, create=False, writable=False), Path(zip_path)
    if target.is_dir():
        raise PipebenchError(f"{str(target)!r} is a folder, not a file", "give a name such as results.zip")
    if target.resolve().is_relative_to(Path(store_path).resolve()):
        raise PipebenchError(f"{str(target)!r} is inside the store", "give a file outside it")
    rows = store.rows()
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with storing(target, "zip"):
        try:
            count = _write(beside, _files(store, rows))
            size = beside.stat().st_size
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    return Packed(len(rows), count - 2, size, tuple(store.notices))


def _write(file: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write the zip, on the disk when this returns; the number of its files."""
    count = total = 0
    with open(file, "wb") as opened:
        with zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            for name, data in files:
                count, total = count + 1, total + len(data)
                if count > MOST_ENTRIES or total > MOST_TOTAL_BYTES:
                    raise PipebenchError(
                        f"the store is too large for one zip: at most {MOST_ENTRIES} files and "
                        f"{MOST_TOTAL_BYTES // 2**30} GiB",
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


def _files(store: Store, rows: list[StoredRow]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file, by name."""
    objects = {
        object_name(kind, identity): (kind, identity) for stored in rows for kind, identity in references(stored)
    }
    for name, (kind, identity) in sorted(objects.items()):
        try:
            yield f"{OBJECTS}/{name}", _checked(store, kind, identity)
        except PipebenchError as error:
            store.notices.append(f"left out: {error.message}")
    yield ROWS, b"".join(msgspec.json.encode(stored) + b"\n" for stored in rows)
    yield MANIFEST, read_file(store.path / MANIFEST)


def _checked(store: Store, kind: str, identity: str) -> bytes:
    """The bytes of an object whose content has its hash."""
    {PROBLEM: store.problem, PLAN: store.plan, SCHEDULE: store.schedule, SCRIPT: store.script}[kind](identity)
    return store.bytes_of(kind, identity)
