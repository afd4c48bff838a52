"""A history: a folder with a file of nights for each class of machine, each line checked by all before it."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec

from pipebench.bench.store.access import hold_lock, storing
from pipebench.bench.store.lines import cut_off, sync_folder
from pipebench.documents.decoding import MALFORMED
from pipebench.documents.document import encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_LINE_BYTES
from pipebench.domain.plan import Plan
from pipebench.domain.value import Value, digest
from pipebench.formats.documents import read_document
from pipebench.formats.files import read_file, write_file
from pipebench.system.scratch import draft_beside, hold
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.night import Night

KIND, VERSION, SUFFIX = "history", 1, ".jsonl"
RESTORE = "restore the file from version control (git checkout -- FILE), or move it away to start a new history"


class Header(Value, frozen=True, kw_only=True):
    """Whose nights these are, and since when (UTC, ISO 8601)."""

    machine: MachineClass
    made_at: str


class _Envelope(msgspec.Struct):
    """Fields that a later version adds do not hide its version."""

    pipebench: str
    version: int
    content: msgspec.Raw


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    previous: str
    sha256: str
    night: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Journal:
    """The nights of one class of machines, oldest first. head: checksum of the last line. notices: a torn end."""

    file: Path
    machine: MachineClass
    nights: tuple[Night, ...]
    head: str
    notices: tuple[str, ...] = ()


def read_journal(file: Path) -> Journal:
    """The nights of a file, every checksum verified.

    An unfinished last line, which a killed writer leaves, is left out and said. Raises PipebenchError: another
    kind of file, a newer version, a line that was edited, taken out or moved, a night dated before the last.
    """
    data = read_file(file)
    whole, _, torn = data.rpartition(b"\n")
    notices = (f"{file}: the last line was never finished, its {len(torn)} bytes are left out",) if torn else ()
    lines = whole.split(b"\n") if whole else []
    if not lines:
        raise PipebenchError(f"{file}: holds no history", RESTORE)
    machine = _header(lines[0], file).machine
    if file.name != f"{machine.name}{SUFFIX}":
        raise PipebenchError(f"{file}: holds the nights of another class of machine, {machine.name}", RESTORE)
    head = hashlib.sha256(lines[0]).hexdigest()
    nights: list[Night] = []
    longest = max(map(len, lines))
    if longest > MOST_LINE_BYTES:
        raise PipebenchError(f"{file}: a line of {longest} bytes, at most {MOST_LINE_BYTES} are read", RESTORE)
    for number, line in enumerate(lines[1:], start=2):
        read = _line(line, head, f"{file}: line {number}")
        night = _night(read, f"{file}: line {number}")
        _in_order(nights, night, f"{file}: line {number}")
        nights.append(night)
        head = read.sha256
    return Journal(file, machine, tuple(nights), head, notices)


def append(folder: Path, machine: MachineClass, night: Night) -> Journal:
    """Add a night to the history of its class, on the disk when this returns; the file is made where it is new.

    Raises PipebenchError as `read_journal`, and when the file cannot be written: it is then as it was.
    """
    file = folder / f"{machine.name}{SUFFIX}"
    with storing(folder, "history"):
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _create(file, _encoded_header(machine, night.recorded_at))
        with hold_lock(file):
            journal = read_journal(file)
            _in_order(journal.nights, night, "this night")
            if journal.notices:
                cut_off(file, read_file(file).rfind(b"\n") + 1)
            line, head = _night_line(night, journal.head)
            _add(file, line, file.stat().st_size)
    return Journal(file, machine, (*journal.nights, night), head, journal.notices)


def _encoded_header(machine: MachineClass, made_at: str) -> bytes:
    content = Header(machine=machine, made_at=made_at)
    return msgspec.json.encode({"pipebench": KIND, "version": VERSION, "content": content}) + b"\n"


def _night_line(night: Night, head: str) -> tuple[bytes, str]:
    content = msgspec.json.encode(night)
    msgspec.json.decode(content, type=Night)  # what cannot be read again is not written
    checksum = _checksum(head, content)
    line = msgspec.json.encode(_Line(head, checksum, msgspec.Raw(content))) + b"\n"
    if len(line) > MOST_LINE_BYTES:
        raise PipebenchError(f"a night of {len(line)} bytes cannot be kept, at most {MOST_LINE_BYTES}")
    return line, checksum


def _create(file: Path, header: bytes) -> None:
    """A file that has its header from the start; left alone where another process was faster."""
    beside = draft_beside(file)
    try:
        with open(beside, "xb") as opened:
            hold(opened.fileno())
            opened.write(header)
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(beside, file)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(file.parent)


def _checksum(head: str, content: bytes) -> str:
    return hashlib.sha256(head.encode() + b"\n" + content).hexdigest()


def _add(file: Path, line: bytes, size: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


def _header(line: bytes, file: Path) -> Header:
    try:
        envelope = msgspec.json.decode(line, type=_Envelope)
    except MALFORMED:
        raise PipebenchError(f"{file}: its first line is not that of a history", RESTORE) from None
    if envelope.pipebench != KIND:
        raise PipebenchError(f"{file}: holds a {envelope.pipebench}, not a {KIND}")
    if envelope.version != VERSION:
        raise PipebenchError(
            f"{file}: written in version {envelope.version} of the history format, this pipebench reads version "
            f"{VERSION}",
            "install a newer pipebench" if envelope.version > VERSION else RESTORE,
        )
    try:
        return msgspec.json.decode(envelope.content, type=Header)
    except MALFORMED as error:
        raise PipebenchError(f"{file}: line 1: {error}", RESTORE) from None


def _line(line: bytes, head: str, where: str) -> _Line:
    try:
        read = msgspec.json.decode(line, type=_Line)
    except MALFORMED as error:
        raise PipebenchError(f"{where} was edited by hand: {error}", RESTORE) from None
    if _checksum(read.previous, bytes(read.night)) != read.sha256:
        raise PipebenchError(f"{where} was edited by hand: its checksum is not that of its content", RESTORE)
    if read.previous != head:
        raise PipebenchError(
            f"{where} does not follow the line before: one was edited, taken out, put in or moved", RESTORE
        )
    return read


def _night(read: _Line, where: str) -> Night:
    try:
        return msgspec.json.decode(read.night, type=Night)
    except MALFORMED as error:
        # the checksum holds: this is what a pipebench wrote
        raise PipebenchError(f"{where}: {error}", "it may come from a newer pipebench: install that") from None


def _in_order(nights: Sequence[Night], night: Night, where: str) -> None:
    if nights and night.at < nights[-1].at:
        raise PipebenchError(
            f"{where} is dated {night.recorded_at}, before the last night of this history, "
            f"{nights[-1].recorded_at}: two clocks disagree",
            "set the clock of the machine that is wrong; nothing was added",
        )


PLANS = "plans"
GAP = timedelta(hours=36)
"""Between nights: more than this, and at least one night is missing."""


@dataclass(frozen=True, slots=True)
class RecordedNight:
    """A night, and the class of the machine that it ran on."""

    machine: str
    night: Night


@dataclass(frozen=True, slots=True)
class History:
    """All classes of a folder by name."""

    folder: Path
    journals: Mapping[str, Journal]

    @property
    def nights(self) -> list[RecordedNight]:
        """The nights of all classes, oldest first."""
        found = [RecordedNight(name, night) for name, each in self.journals.items() for night in each.nights]
        return sorted(found, key=lambda kept: kept.night.at)

    @property
    def notices(self) -> list[str]:
        """What was found unfinished, and the nights that are missing."""
        torn = [notice for each in self.journals.values() for notice in each.notices]
        return torn + _gap_notices([kept.night for kept in self.nights])

    def of_class(self, machine: str) -> tuple[Night, ...]:
        """The nights of a class, none where the machine was not seen before."""
        journal = self.journals.get(machine)
        return journal.nights if journal else ()

    def plan(self, plan_id: str) -> Plan | None:
        """The plan of that hash, None where it was not kept. Raises PipebenchError when it was edited."""
        file = _plan_file(self.folder, plan_id)
        if not file.exists():
            return None
        plan: Plan = read_document(file, "bare-plan")
        if digest(plan) != plan_id:
            raise PipebenchError(
                f"{file} was edited by hand: it is not the plan that its name says",
                "restore it from version control",
            )
        return plan


def open_history(folder: str | Path) -> History:
    """The history of a folder, empty where there is no folder. Raises PipebenchError as `read_journal`."""
    place = Path(folder)
    if os.path.exists(place) and not os.path.isdir(place):
        raise PipebenchError(f"{str(folder)!r} is a file, not the folder of a history")
    journals = [read_journal(file) for file in sorted(place.glob(f"*{SUFFIX}"))] if os.path.isdir(place) else []
    return History(place, {journal.machine.name: journal for journal in journals})


def keep_plan(folder: Path, plan: Plan) -> None:
    """Keep a plan under its hash, for the day on which it is another one."""
    file = _plan_file(folder, digest(plan))
    if not file.exists():
        write_file(file, encode("bare-plan", plan, indent=1) + b"\n")


def _plan_file(folder: Path, plan_id: str) -> Path:
    return folder / PLANS / f"{plan_id}.json"


def _gap_notices(nights: list[Night]) -> list[str]:
    """One line for each gap: what happened in between cannot be told apart."""
    found = []
    for before, after in pairwise(nights):
        days = round((after.at - before.at) / timedelta(days=1)) - 1
        if after.at - before.at > GAP and days > 0:
            many = "1 night is" if days == 1 else f"{days} nights are"
            found.append(f"{many} missing between {before.date} and {after.date}")
    return found
