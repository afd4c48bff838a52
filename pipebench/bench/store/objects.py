"""Problems, plans, schedules and scripts by the hash of their content."""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast

from pipebench.bench.store.lines import sync_folder
from pipebench.bench.store.stored_rows import StoredRow
from pipebench.documents.document import decode, encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import digest
from pipebench.formats.files import read_file, write_file

PROBLEM, PLAN, SCHEDULE, SCRIPT = "problem", "bare-plan", "schedule", "script"
ID = re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})\.(json|py)")
"""Name of an object below the folder of objects."""


MOST_KEPT = 4
"""Problems that were read and are kept."""


class ObjectReader(Protocol):
    """Where the bytes of objects come from."""

    def read(self, name: str) -> bytes | None:
        """The bytes of the object of that name ("ab/ab….json"), None when there is none."""


class Objects:
    """Objects read back, each compared with its hash. where: the name of the store in errors."""

    def __init__(self, reader: ObjectReader, where: str) -> None:
        self._reader = reader
        self._where = where
        self._problems: dict[str, Problem] = {}

    def problem(self, identity: str) -> Problem:
        """The problem of that problem_id. Raises PipebenchError when it is missing or damaged.

        The last few are kept: rows of one problem stand together, and to read and hash it takes milliseconds.
        """
        if identity not in self._problems:
            problem = self._value(PROBLEM, identity, lambda problem: problem.problem_id)
            while len(self._problems) >= MOST_KEPT:
                del self._problems[next(iter(self._problems))]
            self._problems[identity] = cast(Problem, problem)
        return self._problems[identity]

    def plan(self, identity: str) -> Plan:
        """The plan of that plan_id. Raises PipebenchError when it is missing or damaged."""
        return cast(Plan, self._value(PLAN, identity, digest))

    def schedule(self, identity: str) -> Schedule:
        """The schedule of that schedule_id. Raises PipebenchError when it is missing or damaged."""
        return cast(Schedule, self._value(SCHEDULE, identity, digest))

    def script(self, identity: str) -> bytes:
        """The text of a planner's file, for display. Raises PipebenchError when it is missing or damaged."""
        data = self.bytes_of(SCRIPT, identity)
        if script_id(data) != identity:
            raise self._damage_error(SCRIPT, identity)
        return data

    def bytes_of(self, kind: str, identity: str) -> bytes:
        """The bytes of an object, unchecked. Raises PipebenchError when there are none."""
        data = self._reader.read(object_name(kind, identity)) if ID.fullmatch(identity) else None
        if data is None:
            raise PipebenchError(f"{self._where} has no {_word(kind)} {identity[:16]}")
        return data

    def damage(self, kind: str, identity: str) -> str | None:
        """Why the object of that kind and hash cannot be read; None where it is whole."""
        read = {PROBLEM: self.problem, PLAN: self.plan, SCHEDULE: self.schedule, SCRIPT: self.script}
        try:
            read[kind](identity)
        except PipebenchError as error:
            return error.message
        return None

    def _value(self, kind: str, identity: str, hashed: Callable[[Any], str]) -> Any:
        source = f"{_word(kind)} {identity[:16]} of {self._where}"
        value = decode(self.bytes_of(kind, identity), kind, source)
        if hashed(value) != identity:
            raise self._damage_error(kind, identity)
        return value

    def _damage_error(self, kind: str, identity: str) -> PipebenchError:
        return PipebenchError(
            f"{_word(kind)} {identity[:16]} of {self._where} is damaged: its content has another hash",
            "the same `compare` with the same --out runs its trial again",
        )


class ObjectFolder:
    """Objects as files of a folder. Each is written once, and is complete on the disk before it gets its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole: set[str] = set()

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, None when there is none."""
        file = self.folder / name
        return read_file(file) if file.is_file() else None

    def has(self, kind: str, identity: str) -> bool:
        """Whether the object is there, damaged or not."""
        return (self.folder / object_name(kind, identity)).is_file()

    def write(self, kind: str, identity: str, value: Any) -> bool:
        """Write an object unless it is there and whole; whether it was written.

        value: bytes of a script, else a value of the domain. An object that was whole once is not looked at again.
        Raises PipebenchError when it cannot be written, OSError when its folder cannot be flushed.
        """
        name = object_name(kind, identity)
        if name in self._whole:
            return False
        data = value if kind == SCRIPT else encode(kind, value) + b"\n"
        written = not self._holds(kind, identity, data)
        if written:
            self._replace(self.folder / name, data)
        self._whole.add(name)
        return written

    def _holds(self, kind: str, identity: str, data: bytes) -> bool:
        """Whether the object is these bytes, or others of the same hash, such as with another provenance."""
        try:
            kept = self.read(object_name(kind, identity))
        except PipebenchError:
            return False
        behind = Objects(self, str(self.folder))
        return kept is not None and (kept == data or behind.damage(kind, identity) is None)

    def _replace(self, file: Path, data: bytes) -> None:
        fresh = not file.parent.exists()
        if file.is_symlink() or file.is_fifo():
            file.unlink()  # in a store from elsewhere it may lead to any file
        write_file(file, data)
        sync_folder(file.parent)
        if fresh:
            sync_folder(self.folder)

    def clean(self) -> None:
        """Remove the half-written files of killed writers. The caller holds the store's lock."""
        for pattern in (".*.tmp", f"{self.folder.name}/??/.*.tmp"):
            for left in self.folder.parent.glob(pattern):
                left.unlink(missing_ok=True)


def object_name(kind: str, identity: str) -> str:
    """The name of an object below the folder of objects."""
    return f"{identity[:2]}/{identity}.{'py' if kind == SCRIPT else 'json'}"


def references(stored: StoredRow) -> Iterator[tuple[str, str]]:
    """Kind and hash of every object that a stored row refers to."""
    row: Row = stored.row
    named = (PROBLEM, row.problem_id), (PLAN, row.plan_id), (SCHEDULE, row.schedule_id), (SCRIPT, stored.script_id)
    return ((kind, identity) for kind, identity in named if identity)


def script_id(text: bytes) -> str:
    """The hash of a script's text."""
    return hashlib.sha256(text).hexdigest()


def _word(kind: str) -> str:
    return "plan" if kind == PLAN else kind
