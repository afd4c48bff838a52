"""compare --html: the page of a comparison that just ran."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.invocation import invocation
from pipebench.domain.errors import PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.agenda import Finished
    from pipebench.domain.document import PlannedProblem
    from pipebench.domain.row import Row
    from pipebench.hooks.manager import Host

FORGOTTEN = ("--planners", "--html", "--out")
"""Options that the command which repeats one row says anew, or has no need of."""


def write_page(path: Path, host: "Host", finished: "list[Finished]", store: "Store | None") -> None:
    """Write the page. Raises PipebenchError when the file cannot be written."""
    from pipebench.formats.files import write_file
    from pipebench.report.html.rows_page import rows_page

    typed = invocation().words
    rows = [each.outcome.row for each in finished]
    behind = {id(each.outcome.row): each for each in finished}

    def plans(row: "Row") -> "PlannedProblem | None":
        each = behind.get(id(row))
        return _planned(each, store) if each is not None else None

    def repeat(row: "Row") -> str:
        if store is not None and row.key:
            return shlex.join(["pipebench", "rerun", str(store.path), "--row", row.key[:12]])
        return shlex.join(["pipebench", *_without(typed, FORGOTTEN), "--planners", row.planner])

    command = shlex.join(["pipebench", *typed])
    write_file(path, rows_page(host, rows, plans, repeat, "pipebench compare", command=command).encode())
    click.echo(f"{path} written ({len(rows)} rows)", err=True)


def checked(path: Path | None) -> Path | None:
    """The path, before anything runs. Raises PipebenchError for another ending or a folder that is not there."""
    if path is not None:
        if path.suffix not in (".html", ".htm"):
            raise PipebenchError(f"--html writes a page, not {str(path)!r}", "end it in .html")
        if not path.absolute().parent.is_dir():
            raise PipebenchError(f"there is no folder {str(path.parent)!r} for {path.name!r}", "make it first")
    return path


def _planned(each: "Finished", store: "Store | None") -> "PlannedProblem | None":
    from pipebench.domain.document import PlannedProblem

    row, plan, schedule = each.outcome.row, each.outcome.plan, each.outcome.schedule
    if plan is None and store is not None and row.plan_id:
        try:
            plan = store.plan(row.plan_id)
            schedule = store.schedule(row.schedule_id) if row.schedule_id else None
        except PipebenchError:
            return None  # the page says what it has
    if plan is None:
        return None
    return PlannedProblem(
        problem=each.outcome.problem, plan=plan, schedule=schedule, scheduler=row.scheduler, planner=row.planner
    )


def _without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Words of a command line without options that take a value."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept
