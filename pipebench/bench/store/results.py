"""Results wherever they are kept: a store, a packed store, or the rows of `compare --json`."""

import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipebench.bench.store.folder import ROWS, Store
from pipebench.bench.store.journal import MANIFEST
from pipebench.bench.store.mistaken import is_zip
from pipebench.bench.store.objects import Objects
from pipebench.bench.store.pack import Archive
from pipebench.bench.store.stored_rows import StoredRow
from pipebench.documents.decoding import collector_paused
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.formats.documents import read_document

HINT = "give a store (a folder of `compare --out`), a packed store (.zip), or the rows of `compare --json`"


class ObjectSource(Protocol):
    """The objects behind rows. Every method raises PipebenchError when there is no object of that hash."""

    def problem(self, identity: str) -> Problem:
        """The problem of that problem_id."""

    def plan(self, identity: str) -> Plan:
        """The plan of that plan_id."""

    def schedule(self, identity: str) -> Schedule:
        """The schedule of that schedule_id."""


@dataclass(frozen=True, slots=True)
class Results:
    """Rows and the objects behind them, in the order of the command that made them.

    Of repeated trials the last row counts, whatever its code; iterating gives rows.

    stored: the store's lines of these rows, in the same order; empty where the rows come from no store, so that no
    trial can be run again.
    notices: a line for each damaged thing.
    """

    source: str
    rows: tuple[Row, ...]
    behind: ObjectSource
    stored: tuple[StoredRow, ...] = ()
    notices: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def open_results(path: str | Path) -> Results:
    """The results at a path; nothing there is changed, run or unpacked.

    Raises PipebenchError: nothing there, something else, or damaged.
    """
    place = Path(path)
    if os.path.isdir(place):
        store = Store.open(place, create=False, writable=False)
        return _from_lines(str(path), store.rows(), store, store.notices)
    if not os.path.exists(place):
        raise PipebenchError(f"there are no results at {str(path)!r}", HINT)
    if place.name in (MANIFEST, ROWS):
        raise PipebenchError(f"{str(path)!r} is a part of a store", f"give its folder, {str(place.parent)!r}")
    if is_zip(place):
        archive, notices = Archive(place), []
        if archive.others:
            notices = [f"{path}: {len(archive.others)} files that are not of a store are left alone"]
        return _from_lines(str(path), archive.rows(notices), Objects(archive, str(path)), notices)
    return _from_document(str(path), place)


def _from_lines(source: str, lines: list[StoredRow], behind: ObjectSource, notices: list[str]) -> Results:
    with collector_paused():
        latest = {stored.key: stored for stored in lines}
        counted = {_question_key(stored): stored for stored in latest.values()}.values()
        newest = tuple(sorted(counted, key=lambda stored: stored.position))
    older = len(latest) - len(newest)
    told = (f"{source}: {older} rows of older code are left out",) if older else ()
    return Results(source, tuple(stored.row for stored in newest), behind, newest, (*notices, *told))


def _question_key(stored: StoredRow) -> Hashable:
    """Key of a repeated trial whose code or dependencies may have changed."""
    inputs = stored.inputs
    limits = inputs.repeat, inputs.timeout_s, inputs.memory_bytes
    components = stored.planner, stored.scheduler, stored.executors
    return inputs.problem_id, components, inputs.seed, inputs.repetition, inputs.coarsen, limits


def _from_document(source: str, file: Path) -> Results:
    rows: tuple[Row, ...] = read_document(file, "rows").rows
    return Results(source, rows, Objects(_Nothing(), source))


class _Nothing:
    """The objects behind rows that come from no store: none."""

    def read(self, name: str) -> None:
        """No object of any name."""
        del name
