"""What a difference is made of: a plan file, or a set of results."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.documents.naming import in_words
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.formats.documents import read_any_document
from pipebench.system.files import open_regular

WHAT_FITS = "give two plan files, or two of: a folder of `compare --out`, a packed store, rows of `compare --json`"


@dataclass(frozen=True, slots=True)
class PlanSide:
    """A plan, with its problem and schedule where the file has them. source: the file."""

    source: str
    plan: Plan
    problem: Problem | None = None
    schedule: Schedule | None = None
    planner: str = ""
    scheduler: str = ""


@dataclass(frozen=True, slots=True)
class ResultsSide:
    """A set of rows. source: where they came from; notices: what was found damaged there."""

    source: str
    rows: Sequence[Row]
    notices: tuple[str, ...] = ()


def open_side(path: str) -> PlanSide | ResultsSide:
    """What a path holds. Raises PipebenchError: it cannot be read, or holds neither a plan nor rows."""
    if os.path.isdir(path) or _is_zip(path):
        from pipebench.bench.store import open_results

        results = open_results(path)
        return ResultsSide(path, results.rows, results.notices)
    kind, value = read_any_document(path)
    if kind == "plan":
        return PlanSide(path, value.plan, value.problem, value.schedule, value.planner, value.scheduler)
    if kind == "bare-plan":
        return PlanSide(path, value)
    if kind == "result":
        return PlanSide(path, value.plan, schedule=value.schedule, scheduler=value.scheduler)
    if kind == "rows":
        return ResultsSide(path, value.rows)
    raise PipebenchError(f"{path!r} holds {in_words(kind)}, neither a plan nor rows", WHAT_FITS)


def _is_zip(path: str) -> bool:
    """By its first letters, so that a damaged one is told as such."""
    try:
        with open_regular(path) as file:
            return file.read(2) == b"PK"
    except (OSError, ValueError):  # read in full next, which says what is wrong
        return False
