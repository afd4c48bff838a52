"""Store: a folder that keeps every finished trial, for any number of processes at once, and its manifest."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec
from msgspec.structs import replace as replace_fields

from pipebench import __version__
from pipebench.bench.store.access import hold_lock, open_own, storing
from pipebench.bench.store.keys import trial_key
from pipebench.bench.store.lines import Lines, PlacedLine, sync_folder
from pipebench.bench.store.objects import PLAN, PROBLEM, SCHEDULE, SCRIPT, ObjectFolder, Objects, script_id
from pipebench.bench.store.stored_rows import SharedParts, StoredRow, now, require_possible_row
from pipebench.bench.store.sweep_parts import SweepPart, enter_shard
from pipebench.documents.decoding import MALFORMED, collector_paused
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value, digest
from pipebench.formats.files import read_file, write_file

MANIFEST, KIND, VERSION = "store.json", "store", 1
ROWS, OBJECTS, LOCK = "rows.jsonl", "objects", "lock"


class StoreInfo(Value, frozen=True, kw_only=True):
    """Who made the store, and when (UTC, ISO 8601)."""

    made_at: str
    pipebench: str = __version__


class _Envelope(msgspec.Struct):
    """As in domain.document; fields that a later version adds do not hide its version."""

    pipebench: str
    version: int
    content: msgspec.Raw


def encode_manifest(info: StoreInfo) -> bytes:
    """The bytes of store.json."""
    return msgspec.json.encode({"pipebench": KIND, "version": VERSION, "content": info}) + b"\n"


def check_manifest(data: bytes, store: str) -> None:
    """Raise PipebenchError when the bytes of store.json are of another kind or of another version."""
    where = f"store {store!r}"
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if envelope.pipebench == KIND and envelope.version == VERSION:
            msgspec.json.decode(envelope.content, type=StoreInfo)
    except MALFORMED as error:
        raise PipebenchError(f"{where}: its {MANIFEST} is damaged: {error}", "give another folder") from None
    if envelope.pipebench != KIND:
        raise PipebenchError(f"{where}: its {MANIFEST} holds a {envelope.pipebench}, not a store")
    if envelope.version != VERSION:
        newer = "install a newer pipebench, or " if envelope.version > VERSION else ""
        raise PipebenchError(
            f"{where} was written in version {envelope.version} of the store format, "
            f"this pipebench ({__version__}) reads version {VERSION}",
            f"{newer}give another folder",
        )


PROBE_BYTES = 2**14


class Store(Objects):
    """Rows of finished trials, and the problems, plans, schedules and scripts behind them.

    path: the folder. store.json marks it as a store, rows.jsonl holds a row a line, objects/ the rest by hash.
    notices: a line for each damaged thing.
    Stores are made by `Store.open`.
    """

    def __init__(self, path: Path, writable: bool) -> None:
        self.path = path
        self.notices: list[str] = []
        self._writable = writable
        self._folder = ObjectFolder(path / OBJECTS)
        super().__init__(self._folder, f"store {str(path)!r}")
        self._lines = Lines(path / ROWS, StoredRow, self.notices.append, require_possible_row)
        self._parts = SharedParts()
        self._rows: list[StoredRow] = []
        self._latest: dict[str, StoredRow] = {}

    @classmethod
    def open(cls, path: str | Path, create: bool = True, writable: bool = True) -> "Store":
        """Open a store, or make one in a new or empty folder.

        writable: if False nothing in the folder is changed, not even a torn last line.
        Raises PipebenchError when there is no store, the folder holds other things, a newer pipebench wrote it, or
        it cannot be written (tested by writing a file).
        """
        folder = Path(path)
        if "\0" in str(path):
            raise PipebenchError(f"{str(path)!r} is not a path")
        store = cls(folder, writable)
        with storing(folder):
            if writable:
                store._prepare(create)
            else:
                store._check()
                store.refresh()
        return store

    @classmethod
    def unread(cls, path: str | Path) -> "Store":
        """A store that is only read, none of its rows yet. Raises PipebenchError as `open`."""
        store = cls(Path(path), writable=False)
        with storing(store.path):
            store._check()
        return store

    def scan(self) -> Iterator[PlacedLine[StoredRow]]:
        """The rows of an `unread` store, one after the other with their places; the store keeps none of them."""
        with storing(self.path), self._lock():
            if (self.path / ROWS).exists():
                yield from self._lines.scan(cut=False)

    def latest(self) -> dict[str, StoredRow]:
        """The rows by key, the last one of each key; in the order in which the keys were first stored."""
        return dict(self._latest)

    def find(self, key: str) -> StoredRow | None:
        """The last row of that key, None when there is none."""
        return self._latest.get(key)

    def rows(self) -> list[StoredRow]:
        """Every row, replaced ones too, in the order of the file."""
        return list(self._rows)

    def refresh(self) -> None:
        """Take in what other processes have stored since. Raises PipebenchError."""
        with storing(self.path), self._lock():
            self._read()

    def append(
        self,
        stored: StoredRow,
        problem: Problem,
        plan: Plan | None = None,
        schedule: Schedule | None = None,
        *,
        script: bytes | None = None,
        replace: bool = False,
    ) -> bool:
        """Keep a finished trial. Its objects and its line are on the disk when this returns True.

        Returns False and writes nothing when the key is there already (another process was faster), unless
        `replace`.
        script: the text of the planner's file.
        A row without plan_id and schedule_id gets those of the given plan and schedule.
        Raises PipebenchError when it cannot be written; the store is then unchanged.
        Raises ValueError when the row and its objects do not belong together.
        """
        stored = _complete(stored, problem, plan, schedule, script)
        with storing(self.path), self._lock():
            self._read()
            if stored.key in self._latest and not replace:
                return False
            self._folder.write(PROBLEM, stored.row.problem_id, problem)
            for kind, identity, value in (
                (PLAN, stored.row.plan_id, plan),
                (SCHEDULE, stored.row.schedule_id, schedule),
                (SCRIPT, stored.script_id, script),
            ):
                if identity is not None and value is not None:
                    self._folder.write(kind, identity, value)
            self._lines.append(stored)
            self._take(stored)
        return True

    def enter_shard(self, part: SweepPart) -> None:
        """Say which shard of a sweep the store is for. Raises PipebenchError where it is another one's."""
        with storing(self.path), self._lock():
            enter_shard(self.path, part)

    def _prepare(self, create: bool) -> None:
        folder, manifest = self.path, self.path / MANIFEST
        if create:
            self._make_folder()
        self._check(may_be_new=create)
        with hold_lock(folder / LOCK):
            if not manifest.exists():
                write_file(manifest, encode_manifest(StoreInfo(made_at=now())))
            self._check()
            (folder / OBJECTS).mkdir(exist_ok=True)
            os.close(open_own(folder / ROWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            self._probe()
            sync_folder(folder)
            self._folder.clean()
            self._read()

    def _make_folder(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise PipebenchError(f"{str(self.path)!r} is a file, not a folder for a store", "give another name")
        if not self.path.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            sync_folder(self.path.parent)

    def _check(self, may_be_new: bool = False) -> None:
        if (self.path / MANIFEST).is_file():
            check_manifest(read_file(self.path / MANIFEST), str(self.path))
        elif not self.path.exists():
            raise PipebenchError(f"there is no store {str(self.path)!r}")
        elif not may_be_new:
            raise PipebenchError(f"{str(self.path)!r} is not a store: it has no {MANIFEST}")
        else:
            self._refuse_others()

    def _refuse_others(self) -> None:
        others = [name for name in sorted(os.listdir(self.path)) if not _is_ours(name)]
        # another process may have made the store since: it writes the manifest first
        if others and not (self.path / MANIFEST).is_file():
            raise PipebenchError(
                f"{str(self.path)!r} holds other things ({', '.join(others[:3])}) and no {MANIFEST}",
                "give a new or an empty folder for the store",
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
        if self._writable or (self.path / ROWS).exists():
            with collector_paused():
                for placed in self._lines.scan(cut=self._writable):
                    self._take(placed.value)

    def _take(self, stored: StoredRow) -> None:
        self._parts.share(stored)
        self._rows.append(stored)
        self._latest[stored.key] = stored


def _is_ours(name: str) -> bool:
    """Whether a process that was killed while it made a store, or is writing now, leaves a file of this name."""
    return name in (LOCK, MANIFEST) or (name.startswith(".") and name.endswith(".tmp"))


def _complete(
    stored: StoredRow, problem: Problem, plan: Plan | None, schedule: Schedule | None, script: bytes | None
) -> StoredRow:
    """The row with the hashes of its objects."""
    row = stored.row
    made: dict[str, str] = dict(_fitting("problem_id", row, problem.problem_id))
    if plan is not None:
        made |= _fitting("plan_id", row, digest(plan))
    if schedule is not None:
        made |= _fitting("schedule_id", row, digest(schedule))
    if stored.key != trial_key(stored.inputs) or row.key != stored.key:
        raise ValueError("the key of a row is not that of its inputs")
    script_hash = stored.script_id if script is None else script_id(script)
    return replace_fields(stored, script_id=script_hash, row=replace_fields(row, **made))


def _fitting(field: str, row: Row, identity: str) -> Iterator[tuple[str, str]]:
    if getattr(row, field) not in (None, identity):
        raise ValueError(f"{field} of a row is not that of the value with it")
    yield field, identity
