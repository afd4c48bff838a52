"""Journal: a folder that keeps records a line each, for any number of processes at once, and its manifest.

A store of trials is one (`folder.py`), a history of nights is another (`track/nights/history.py`).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec

from pipebench import __version__
from pipebench.bench.store.access import hold_lock, open_own, storing
from pipebench.bench.store.lines import Lines, PlacedLine, sync_folder
from pipebench.bench.store.mistaken import no_folder
from pipebench.bench.store.objects import ObjectFolder, Objects
from pipebench.bench.store.stored_rows import now
from pipebench.documents.decoding import MALFORMED, collector_paused
from pipebench.documents.naming import in_words
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.formats.files import read_file, write_file

MANIFEST, OBJECTS, LOCK = "store.json", "objects", "lock"
SHOWN_BY = {"store": "pipebench show {}", "history": "pipebench track report --history {}"}
"""What reads a folder, by what its manifest says that it is."""


class Record(Protocol):
    """What a line holds."""

    @property
    def key(self) -> str:
        """Hash of what it is about: two records of one key are two answers to one question."""

    @property
    def finished_at(self) -> str:
        """UTC, ISO 8601."""


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class RecordKind(Generic[R]):
    """One kind of records.

    name, version: in the manifest, and in messages. plural: what records are called. file: that has the lines.
    type: of a record. references: kind and hash of every object that a record refers to. check: raises
    InvalidValue for a record that cannot be. remedy: what to do about a damaged line, which is an error then;
    None: it is left out and said. alone: whether the folder must hold nothing else when it is made.
    """

    name: str
    version: int
    plural: str
    file: str
    type: type[R]
    references: Callable[[R], Iterator[tuple[str, str]]]
    check: Callable[[R], None] | None = None
    remedy: str | None = None
    alone: bool = True


class StoreInfo(Value, frozen=True, kw_only=True):
    """Who made the store, and when (UTC, ISO 8601)."""

    made_at: str
    pipebench: str = __version__


class _Envelope(msgspec.Struct):
    """As in domain.document; fields that a later version adds do not hide its version."""

    pipebench: str
    version: int
    content: msgspec.Raw


def encode_manifest(info: StoreInfo, kind: RecordKind[Any]) -> bytes:
    """The bytes of store.json."""
    return msgspec.json.encode({"pipebench": kind.name, "version": kind.version, "content": info}) + b"\n"


def check_manifest(data: bytes, path: str, kind: RecordKind[Any]) -> None:
    """Raise PipebenchError when the bytes of store.json are of another kind or of another version."""
    where = f"{kind.name} {path!r}"
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if envelope.pipebench == kind.name and envelope.version == kind.version:
            msgspec.json.decode(envelope.content, type=StoreInfo)
    except MALFORMED as error:
        raise PipebenchError(f"{where}: its {MANIFEST} is damaged: {error}", "give another folder") from None
    if envelope.pipebench != kind.name:
        reader = SHOWN_BY.get(envelope.pipebench, "").format(path)
        raise PipebenchError(
            f"{where}: its {MANIFEST} holds {in_words(envelope.pipebench)}, not {in_words(kind.name)}",
            f"`{reader}` shows it" if reader else None,
        )
    if envelope.version != kind.version:
        newer = "install a newer pipebench, or " if envelope.version > kind.version else ""
        raise PipebenchError(
            f"{where} was written in version {envelope.version} of the {kind.name} format, "
            f"this pipebench ({__version__}) reads version {kind.version}",
            f"{newer}give another folder",
        )


def is_kind(folder: Path, kind: RecordKind[Any]) -> bool:
    """Whether the manifest of a folder says that it holds such records; False also where none can be read."""
    try:
        return bool(msgspec.json.decode(read_file(folder / MANIFEST), type=_Envelope).pipebench == kind.name)
    except (PipebenchError, *MALFORMED):
        return False


PROBE_BYTES = 2**14


class Journal(Objects, Generic[R]):
    """Records in the order in which they came, and the objects behind them.

    kind: what the records are. path: the folder; store.json marks it, a file has a record a line, objects/ the
    rest by hash. notices: a line for each damaged thing.
    Made by `open`.
    """

    kind: ClassVar[RecordKind[Any]]

    def __init__(self, path: Path, writable: bool) -> None:
        self.path = path
        self.notices: list[str] = []
        self._writable = writable
        self._folder = ObjectFolder(path / OBJECTS)
        kind = self.kind
        super().__init__(self._folder, f"{kind.name} {str(path)!r}")
        self._lines: Lines[R] = Lines(path / kind.file, kind.type, self.notices.append, kind.check, kind.remedy)
        self._records: list[R] = []
        self._latest: dict[str, R] = {}

    @property
    def content(self) -> tuple[Path, Path]:
        """The file of records and the folder of objects."""
        return self._lines.file, self.path / OBJECTS

    @classmethod
    def open(cls, path: str | Path, create: bool = True, writable: bool = True) -> Self:
        """Open a store, or make one in a new or empty folder.

        writable: if False nothing in the folder is changed, not even a torn last line.
        Raises PipebenchError when there is no store, the folder holds other things, a newer pipebench wrote it, or
        it cannot be written (tested by writing a file).
        """
        folder = Path(path)
        if "\0" in str(path):
            raise PipebenchError(f"{str(path)!r} is not a path")
        opened = cls(folder, writable)
        with storing(folder, cls.kind.name):
            if writable:
                opened._prepare(create)
            else:
                opened._check()
                opened.refresh()
        return opened

    @classmethod
    def unread(cls, path: str | Path) -> Self:
        """A store that is only read, none of its records yet. Raises PipebenchError as `open`."""
        opened = cls(Path(path), writable=False)
        with storing(opened.path, cls.kind.name):
            opened._check()
        return opened

    def scan(self) -> Iterator[PlacedLine[R]]:
        """The records of an `unread` store, one after the other with their places; it keeps none of them."""
        with storing(self.path, self.kind.name), self._lock():
            if self._lines.file.exists():
                yield from self._lines.scan(cut=False)

    def latest(self) -> dict[str, R]:
        """The records by key, the last one of each key; in the order in which the keys were first stored."""
        return dict(self._latest)

    def find(self, key: str) -> R | None:
        """The last record of that key, None when there is none."""
        return self._latest.get(key)

    def rows(self) -> list[R]:
        """Every record, replaced ones too, in the order of the file."""
        return list(self._records)

    def refresh(self) -> None:
        """Take in what other processes have stored since. Raises PipebenchError."""
        with storing(self.path, self.kind.name), self._lock():
            self._read()

    def _prepare(self, create: bool) -> None:
        folder, manifest = self.path, self.path / MANIFEST
        if create:
            self._make_folder()
        self._check(may_be_new=create)
        with hold_lock(folder / LOCK):
            if not manifest.exists():
                write_file(manifest, encode_manifest(StoreInfo(made_at=now()), self.kind))
            self._check()
            (folder / OBJECTS).mkdir(exist_ok=True)
            os.close(open_own(self._lines.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            self._probe()
            sync_folder(folder)
            self._folder.clean()
            self._read()

    def _make_folder(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise PipebenchError(
                f"{str(self.path)!r} is a file, not a folder for a {self.kind.name}", "give another name"
            )
        if not self.path.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            sync_folder(self.path.parent)

    def _check(self, may_be_new: bool = False) -> None:
        if (self.path / MANIFEST).is_file():
            check_manifest(read_file(self.path / MANIFEST), str(self.path), self.kind)
        elif not self.path.exists():
            raise PipebenchError(f"there is no {self.kind.name} {str(self.path)!r}")
        elif self.path.is_file():
            raise no_folder(self.path, self.kind.name)
        elif not may_be_new:
            raise PipebenchError(f"{str(self.path)!r} is not a {self.kind.name}: it has no {MANIFEST}")
        elif self.kind.alone:
            self._refuse_others()

    def _refuse_others(self) -> None:
        others = [name for name in sorted(os.listdir(self.path)) if not _is_ours(name)]
        # another process may have made the store since: it writes the manifest first
        if others and not (self.path / MANIFEST).is_file():
            raise PipebenchError(
                f"{str(self.path)!r} holds other things ({', '.join(others[:3])}) and no {MANIFEST}",
                f"give a new or an empty folder for the {self.kind.name}",
            )

    def _probe(self) -> None:
        """Fail on a full disk before anything runs."""
        file = self.path / f".probe.{os.getpid()}.tmp"
        try:
            with open(file, "wb") as opened:
                opened.write(bytes(PROBE_BYTES))
                opened.flush()
                os.fsync(opened.fileno())
        finally:
            file.unlink(missing_ok=True)

    def _lock(self) -> AbstractContextManager[None]:
        if self._writable:
            return hold_lock(self.path / LOCK)
        try:
            os.close(open_own(self.path / LOCK, os.O_RDONLY))
        except OSError:
            return nullcontext()  # a copy without its lock file, or one that this user may only read
        return hold_lock(self.path / LOCK, shared=True)

    def _read(self) -> None:
        """Take in what was added since. The caller holds the lock."""
        if self._writable or self._lines.file.exists():
            with collector_paused():
                for placed in self._lines.scan(cut=self._writable):
                    self._take(placed.value)

    def _write(self, record: R, objects: Iterable[tuple[str, str, Any]]) -> None:
        """Add a record; it and its objects (kind, hash and value) are on the disk when this returns.

        The caller holds the lock and has read.
        """
        for each in objects:
            self._folder.write(*each)
        self._lines.append(record)
        self._take(record)

    def _take(self, record: R) -> None:
        self._records.append(record)
        self._latest[record.key] = record


def _is_ours(name: str) -> bool:
    """Whether a process that was killed while it made a store, or is writing now, leaves a file of this name."""
    return name in (LOCK, MANIFEST) or (name.startswith(".") and name.endswith(".tmp"))
