"""pipebench merge: several stores as one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.completion import files
from pipebench.cli.parameters import OneOf
from pipebench.cli.terminal import say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.merge import Conflict


@click.command()
@click.argument("stores", nargs=-1, required=True, shell_complete=files)
@click.option(
    "-o", "--out", shell_complete=files, required=True, type=click.Path(path_type=Path), help="The new store."
)
@click.option("--prefer", type=OneOf(["first", "newest"]), help="Whose row counts where results differ.")
def command(stores: tuple[str, ...], out: Path, prefer: str | None) -> int:
    """Join STORES, such as the shards of a sweep or the nights of two machines, to a new one; they are only read.

    STORES: folders of `compare --out` or of `track record`, or folders that hold such. Rows of the same trial that
    are equal apart from times are kept once, and so are equal nights. Where rows differ, each conflict is named
    and nothing is written, unless --prefer says which row counts. Exit code 1 for conflicts, 5 where shards or
    trials are missing; each is named.
    """
    from typing import cast

    from pipebench.bench.merge import Preference, merge, stores_at
    from pipebench.bench.store import Store
    from pipebench.track.nights.history import NightJournal, require_no_earlier_format

    for each in stores_at(stores):
        require_no_earlier_format(each)
    done = merge(stores, out, cast("Preference | None", prefer), (Store, NightJournal))
    for notice in done.notices:
        say(f"warning: {notice}", err=True)
    for conflict in done.conflicts:
        say(_words(conflict), err=True)
    if done.conflict_count > len(done.conflicts):
        say(f"{done.conflict_count - len(done.conflicts)} more conflicts", err=True)
    for line in done.missing:
        say(line, err=True)
    if not done.written:
        raise PipebenchError(
            f"{done.conflict_count} conflict{'s' * (done.conflict_count > 1)} between stores: nothing is written",
            "--prefer first or --prefer newest says which of them count",
            ExitCode.CONDITION_FAILED,
        )
    also = f", {done.equal} equal ones left out" if done.equal else ""
    say(f"{out}: {done.records} {done.kind}{also}, {done.objects} objects")
    return ExitCode.SOME_FAILED if done.missing else ExitCode.OK


def _words(conflict: "Conflict") -> str:
    row = conflict.row.row
    about = f"{row.planned_by} on {row.workload or row.model}, {row.place}, {row.regime}"
    differs = ", ".join(f"{each.field} ({_short(each.before)}, {_short(each.after)})" for each in conflict.changes)
    return f"conflict: {about}, row {row.key[:12]}: {conflict.first} and {conflict.second} differ in {differs}"


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
