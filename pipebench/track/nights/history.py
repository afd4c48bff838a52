"""A history: the store of nights, and all of them in the order in which they were recorded."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from pipebench.bench.store.access import storing
from pipebench.bench.store.folder import ROWS
from pipebench.bench.store.journal import MANIFEST, OBJECTS, Journal, RecordKind
from pipebench.bench.store.objects import PLAN, ObjectFolder, Objects
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.value import Value, digest
from pipebench.track.nights import exact
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.night import CLOCKS, GAP, Night


class StoredNight(Value, frozen=True, kw_only=True):
    """One line of a history.

    key: hash of all the rest. before: key of the night before on this class of machine, empty for the first.
    """

    key: str
    before: str
    machine: MachineClass
    night: Night

    @classmethod
    def of(cls, machine: MachineClass, night: Night, before: str) -> "StoredNight":
        """With its key."""
        return cls(key=digest((before, machine, night)), before=before, machine=machine, night=night)

    @property
    def finished_at(self) -> str:
        """When it was recorded."""
        return self.night.recorded_at


def plans_of(night: Night) -> list[str]:
    """The hashes of its plans."""
    return [str(plan) for plan in dict.fromkeys(each.exact.get(exact.PLAN) for each in night.measured) if plan]


def _references(stored: StoredNight) -> Iterator[tuple[str, str]]:
    return ((PLAN, plan) for plan in plans_of(stored.night))


NIGHTS = RecordKind(
    "history",
    2,
    "nights",
    "nights.jsonl",
    StoredNight,
    _references,
    remedy="restore it from version control (git checkout -- FILE); unknown fields are a newer pipebench's",
    alone=False,
)


class NightJournal(Journal[StoredNight]):
    """The nights of any number of classes of machine. Each names the one before it, so that none goes unseen."""

    kind = NIGHTS

    def append(
        self, machine: MachineClass, night: Night, plans: Iterable[Plan] = (), measured: bool = False
    ) -> Night:
        """Add a night with its plans; all is on the disk when this returns, which gives the night as it was added.

        measured: it cost time, and what it was asked for was right when it began (`require_after`,
        `require_new_benchmarks`): `not_before` dates it, and benchmarks that were added meanwhile are left out.
        Raises PipebenchError when another one is dated before the last of its class; when it cannot be written;
        for benchmarks alone that are there already.
        """
        with storing(self.path, self.kind.name), self._lock():
            self._read()
            last = self.last(machine)
            if last is not None and measured:
                night = not_before(last.night, _with_new_benchmarks(self._nights_of(machine), night))
            elif last is not None:
                require_after(last.night, night.at)
            stored = StoredNight.of(machine, night, last.key if last else "")
            self._write(stored, ((PLAN, digest(plan), plan) for plan in plans))
        return night

    def _read(self) -> None:
        """All of them: a night whose predecessor is not there is one too many, or one was taken out."""
        super()._read()
        for each in self._records:
            if each.before and each.before not in self._latest:
                raise PipebenchError(
                    f"{self._lines.file}: the night before that of {each.finished_at} was taken out", NIGHTS.remedy
                )

    def _nights_of(self, machine: MachineClass) -> list[Night]:
        return [each.night for each in self._records if each.machine == machine]

    def last(self, machine: MachineClass) -> StoredNight | None:
        """The latest night of a class, None where it has none."""
        mine = [each for each in reversed(self._records) if each.machine == machine]
        return max(mine, key=lambda each: each.night.at, default=None)


def require_after(last: Night, moment: datetime, apart: timedelta = timedelta(0)) -> None:
    """Raise PipebenchError where a night of this moment would be dated before the last one.

    apart: by how much the two clocks may differ, of a night that `not_before` is to date.
    """
    if moment < last.at - apart:
        raise PipebenchError(
            f"two clocks disagree: here it is {moment.isoformat(timespec='seconds')}, the last night of this "
            f"history is dated {last.recorded_at}",
            "set the clock of the machine that is wrong; nothing was added. Was that night's clock wrong? It is "
            f"the last of its machine: its line can be taken out of {NIGHTS.file}",
        )


def require_new_benchmarks(nights: Iterable[Night], benchmarks_at: str) -> None:
    """Raise PipebenchError where the benchmarks of this moment are in one of the nights of their class."""
    if any(night.benchmarks_at == benchmarks_at for night in nights):
        raise PipebenchError(f"the benchmarks of {benchmarks_at} are in the history already", "run them again")


def _with_new_benchmarks(nights: Iterable[Night], night: Night) -> Night:
    """The night; where its benchmarks are in the history by now, what else was measured."""
    try:
        if night.benchmarks_at:
            require_new_benchmarks(nights, night.benchmarks_at)
    except PipebenchError as error:
        if not night.measured:
            raise
        return replace(night, benchmarks=(), benchmarks_at="", notices=(*night.notices, error.message))
    return night


def not_before(last: Night, night: Night) -> Night:
    """The night, dated a second after the last one where it would not be after it: each moment is of one night.

    So where the clock was set back while it ran, or another night was added at the same moment.
    """
    if night.at > last.at:
        return night
    moment = (last.at.astimezone(UTC) + timedelta(seconds=1)).isoformat(timespec="seconds")
    notices = night.notices
    if last.at - night.at > CLOCKS:
        words = (
            f"the clock went back to {night.recorded_at} while this night ran: it is dated after the night before"
        )
        notices = (*notices, words)
    return replace(night, recorded_at=moment, notices=notices)


@dataclass(frozen=True)
class History:
    """All nights, oldest first. notices: an unfinished line, missing nights."""

    folder: Path
    nights: tuple[StoredNight, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """That has the nights."""
        return self.folder / NIGHTS.file

    @property
    def machines(self) -> list[MachineClass]:
        """Their classes, by name."""
        return sorted({kept.machine for kept in self.nights}, key=lambda machine: machine.name)

    def of_class(self, machine: MachineClass) -> tuple[Night, ...]:
        """The nights of a class, none where the machine was not seen before."""
        return tuple(kept.night for kept in self.nights if kept.machine == machine)

    def plan(self, plan_id: str) -> Plan | None:
        """The plan of that hash, None where it was not kept. Raises PipebenchError when it is damaged."""
        objects = ObjectFolder(self.folder / OBJECTS)
        return Objects(objects, str(self.folder)).plan(plan_id) if objects.has(PLAN, plan_id) else None


def open_history(folder: str | Path) -> History:
    """The history of a folder, empty where there is none.

    Raises PipebenchError: it is of another kind, format or version, a line is damaged, a night was taken out.
    """
    place = Path(folder)
    require_no_earlier_format(place)
    is_new = not any(os.path.exists(place / name) for name in (MANIFEST, NIGHTS.file))
    if is_new and (os.path.isdir(place) or not os.path.exists(place)):
        return History(place)
    journal = NightJournal.open(place, create=False, writable=False)
    nights = tuple(sorted(journal.latest().values(), key=lambda each: each.night.at))
    return History(place, nights, (*journal.notices, *_gap_notices([each.night for each in nights])))


def add_night(
    folder: Path, machine: MachineClass, night: Night, plans: Iterable[Plan] = (), measured: bool = False
) -> Night:
    """Add a night to the history of a folder, which is made where it is new; gives the night as it was added.

    measured: as of `NightJournal.append`. Raises PipebenchError as that and `open_history`; the file is then as it
    was.
    """
    return writable_history(folder).append(machine, night, plans, measured)


def writable_history(folder: Path) -> NightJournal:
    """The history of a folder, made where it is new. Raises PipebenchError as `open_history`, and where it cannot
    be written.
    """
    require_no_earlier_format(folder)
    return NightJournal.open(folder)


def earlier_files(folder: Path) -> list[Path]:
    """Files as an earlier pipebench kept nights in, one for each class of machine."""
    found = folder.glob("*.jsonl") if os.path.isdir(folder) else ()
    return sorted(file for file in found if file.name not in (NIGHTS.file, ROWS))


def require_no_earlier_format(folder: Path) -> None:
    """Raise PipebenchError where a folder holds such files."""
    if files := earlier_files(folder):
        raise PipebenchError(
            f"{files[0]}: nights as an earlier pipebench kept them are not read",
            f"`pipebench track convert --history {folder}` makes a history of them, once",
        )


def _gap_notices(nights: list[Night]) -> list[str]:
    """One line for each gap: what happened in between cannot be told apart."""
    found = []
    for before, after in pairwise(nights):
        days = round((after.at - before.at) / timedelta(days=1)) - 1
        if after.at - before.at > GAP and days > 0:
            many = "1 night is" if days == 1 else f"{days} nights are"
            found.append(f"{many} missing between {before.date} and {after.date}")
    return found
