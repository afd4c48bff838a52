"""pipebench reproduce: a paper's figure or table again, its claims judged."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host, print_json
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.domain.artefact import Result


@click.command()
@click.argument("artefact", required=False)
@click.option("--all", "every", is_flag=True, help="All artefacts of all papers.")
@click.option("--full", is_flag=True, help="All cells of the paper, not a subset of a few minutes.")
@click.option("--profile", "-p", "profiles", multiple=True, help="Profile files to run beside what ships.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for chart, table, series and a store.")
@click.option("--fresh", is_flag=True, help="Run what the store in --out holds already, too.")
@click.option("--jobs", type=click.IntRange(1), help="Cells side by side (their search times mean nothing).")
@click.option("--html", type=click.Path(path_type=Path), help="One page of all claims.")
@click.option("--json", "as_json", is_flag=True, help="Findings, series and rows as JSON on stdout.")
def command(
    artefact: str | None,
    every: bool,
    full: bool,
    profiles: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    jobs: int | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Run ARTEFACT (one of `pipebench list artefacts`) and put its results beside each of the paper's claims.

    With --out every finished cell is kept at once: the same command again goes on where it was stopped.
    """
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.cli.compare_page import checked
    from pipebench.cli.reproduced import Asked, Reproduced, reproduced, shown, write_page

    if fresh and out is None:
        raise PipebenchError("--fresh is about a store", "name its folder with --out")
    if every == (artefact is not None):
        raise click.UsageError("name one artefact, or say --all (pipebench list artefacts)")
    page = checked(html)
    host = open_host()
    names = list(host.slot("artefacts")) if every else [artefact or ""]
    where = Where(jobs=jobs or 1)
    if not where.parallel:
        isolation()
    store = Store.open(out / "store") if out is not None else None
    done: list[Reproduced] = []
    codes: list[int] = []
    interrupted: PipebenchError | None = None
    for name in names:
        try:
            done.append(reproduced(host, name, Asked(full, profiles, out, fresh), store, where))
        except PipebenchError as error:
            if not every or error.exit_code == ExitCode.INTERRUPTED:
                raise
            click.echo(f"warning: {name}: {error}", err=True)
            codes.append(ExitCode.SOME_FAILED)
            continue
        codes.append(_exit_code(done[-1].results))
        if not as_json:
            shown(done[-1])
        if done[-1].interrupted:
            cells = len(done[-1].results)
            interrupted = PipebenchError(f"interrupted after {cells} cells", exit_code=ExitCode.INTERRUPTED)
            break
    if as_json:
        plain = [each.plain for each in done]
        print_json(plain if every else plain[0])
    if page is not None:
        write_page(page, done)
    if interrupted is not None:
        raise interrupted
    return max(codes, default=ExitCode.NOTHING_RAN)


def _exit_code(results: "list[Result]") -> int:
    statuses = {result.row.status for result in results}
    if not statuses & {"ok", "infeasible"}:
        return ExitCode.NOTHING_RAN
    return ExitCode.SOME_FAILED if statuses & {"crashed", "timeout", "memory"} else ExitCode.OK
