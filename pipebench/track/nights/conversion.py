"""Nights as pipebench kept them before histories were stores: read once more, and made a history.

Such a folder had a file for each class of machine, a header and a night a line, each line with the SHA-256 of
itself after that of the line before it; and `plans/` with a document for each plan.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pipebench.bench.store.objects import PLAN
from pipebench.documents.decoding import MALFORMED
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.value import digest
from pipebench.formats.documents import read_document
from pipebench.formats.files import read_file
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.history import NightJournal, earlier_files, plans_of
from pipebench.track.nights.night import Night

PLANS = "plans"


class _Content(msgspec.Struct):
    machine: MachineClass


class _Header(msgspec.Struct):
    pipebench: str
    version: int
    content: _Content


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    previous: str
    sha256: str
    night: msgspec.Raw


def convert(folder: Path) -> int:
    """Make the earlier files of a folder a history in their place; gives how many nights there are.

    The files go when all of it is on the disk; a conversion that was interrupted is started again by the next.
    Raises PipebenchError: there is none, one is damaged, or the folder cannot be written.
    """
    files = earlier_files(folder)
    if not files:
        raise PipebenchError(f"{str(folder)!r} holds no nights of an earlier pipebench", "there is nothing to do")
    found = sorted((each for file in files for each in _nights(file)), key=lambda each: each[1].at)
    plans = {digest(plan): plan for file in sorted((folder / PLANS).glob("*.json")) for plan in [_plan(file)]}
    journal = NightJournal.open(folder)
    there = {(each.machine, each.night) for each in journal.rows()}
    for machine, night in found:
        if (machine, night) not in there:
            journal.append(machine, night, [plans[plan] for plan in plans_of(night) if plan in plans])
    for file in (*files, *(folder / PLANS).glob("*.json")):
        file.unlink()
    if (folder / PLANS).is_dir() and not any((folder / PLANS).iterdir()):
        (folder / PLANS).rmdir()
    return len(found)


def _nights(file: Path) -> Iterator[tuple[MachineClass, Night]]:
    """Those of one file; an unfinished last line is no night. Raises PipebenchError where a line is not whole."""
    whole = read_file(file).rpartition(b"\n")[0]
    first, *lines = whole.split(b"\n")
    try:
        header = msgspec.json.decode(first, type=_Header)
    except MALFORMED:
        header = None
    if header is None or (header.pipebench, header.version) != ("history", 1):
        raise PipebenchError(f"{file}: its first line is not that of a history", "move it away")
    head = hashlib.sha256(first).hexdigest()
    for number, text in enumerate(lines, start=2):
        try:
            line = msgspec.json.decode(text, type=_Line)
            night = msgspec.json.decode(line.night, type=Night)
        except MALFORMED as error:
            raise PipebenchError(f"{file}: line {number}: {error}", "restore it from version control") from None
        sums = hashlib.sha256(line.previous.encode() + b"\n" + bytes(line.night)).hexdigest()
        if (line.previous, line.sha256) != (head, sums):
            raise PipebenchError(
                f"{file}: line {number} was edited, taken out, put in or moved", "restore it from version control"
            )
        head = sums
        yield header.content.machine, night


def _plan(file: Path) -> Plan:
    plan: Plan = read_document(file, PLAN)
    if digest(plan) != file.stem:
        raise PipebenchError(f"{file}: it is not the plan that its name says", "restore it from version control")
    return plan
