"""A history: a folder with a file of nights for each class of machine, and the plans that the nights found."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from pipebench.domain.document import content_digest, encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.value import digest
from pipebench.formats.files import read_file, write_file
from pipebench.formats.native import read_document
from pipebench.track.journal import SUFFIX, Journal, read_journal
from pipebench.track.night import Night

PLANS = "plans"
GAP = timedelta(hours=36)
"""Between nights: more than this, and at least one night is missing."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A night, and the class of the machine that it ran on."""

    machine: str
    night: Night


@dataclass(frozen=True, slots=True)
class History:
    """All classes of a folder by name."""

    folder: Path
    journals: Mapping[str, Journal]

    @property
    def nights(self) -> list[Kept]:
        """The nights of all classes, oldest first."""
        found = [Kept(name, night) for name, each in self.journals.items() for night in each.nights]
        return sorted(found, key=lambda kept: kept.night.at)

    @property
    def notices(self) -> list[str]:
        """What was found unfinished, and the nights that are missing."""
        torn = [notice for each in self.journals.values() for notice in each.notices]
        return torn + _missing([kept.night for kept in self.nights])

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
        if content_digest(read_file(file), str(file)) != plan_id:
            raise PipebenchError(
                f"{file} was edited by hand: it is not the plan that its name says",
                "restore it from version control",
            )
        return plan


def open_history(folder: str | Path) -> History:
    """The history of a folder, empty where there is no folder. Raises PipebenchError as `read_journal`."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise PipebenchError(f"{str(folder)!r} is a file, not the folder of a history")
    journals = [read_journal(file) for file in sorted(place.glob(f"*{SUFFIX}"))] if place.is_dir() else []
    return History(place, {journal.machine.name: journal for journal in journals})


def keep_plan(folder: Path, plan: Plan) -> None:
    """Keep a plan under its hash, for the day on which it is another one."""
    file = _plan_file(folder, digest(plan))
    if not file.exists():
        write_file(file, encode("bare-plan", plan, indent=1) + b"\n")


def _plan_file(folder: Path, plan_id: str) -> Path:
    return folder / PLANS / f"{plan_id}.json"


def _missing(nights: list[Night]) -> list[str]:
    """One line for each gap: what happened in between cannot be told apart."""
    found = []
    for before, after in pairwise(nights):
        days = round((after.at - before.at) / timedelta(days=1)) - 1
        if after.at - before.at > GAP and days > 0:
            many = "1 night is" if days == 1 else f"{days} nights are"
            found.append(f"{many} missing between {before.date} and {after.date}")
    return found
