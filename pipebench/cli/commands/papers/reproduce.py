"""pipebench reproduce: a paper's figure or table again, its claims judged, shown and written."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host
from pipebench.cli.artefact_files import ArtefactRun, write_pages
from pipebench.cli.artefact_runs import ArtefactRuns, ReproduceOptions
from pipebench.cli.completion import frameworks, of_slot, one_of
from pipebench.cli.parameters import NO_WAIT, WholeFrom, patience_s
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.domain.artefact import Result


def print_artefact(done: ArtefactRun) -> None:
    """Claims, tables and timelines in the terminal."""
    from pipebench.report.gantt.text import legend, timeline
    from pipebench.report.text.findings import print_findings, print_tables

    out = console()
    print_findings(out, done.artefact, done.results, done.found)
    print_tables(out, done.figure)
    for each in done.drawn:
        for line in ("", each.title, *timeline(each, out.width)):
            say(line)
    for line in dict.fromkeys(map(legend, done.drawn)):
        say(line)
    for note in done.figure.notes:
        say(f"  {note}")


@click.command()
@click.argument("artefact", required=False, shell_complete=one_of(of_slot("artefacts")))
@click.option("--all", "every", is_flag=True, help="All artefacts of all papers.")
@click.option("--full", is_flag=True, help="All cells of the paper, not a subset of a few minutes.")
@click.option(
    "--full-within",
    metavar="TIME",
    help="All cells of the artefacts that are expected to take no longer than this each, such as 30min.",
)
@click.option("--profile", "-p", "profiles", multiple=True, help="Profile files to run beside what ships.")
@click.option(
    "--framework",
    shell_complete=one_of(frameworks),
    help="Price each step as a training framework runs it (`pipebench list frameworks`), not as the paper counts.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for chart, table, series and a store.")
@click.option("--fresh", is_flag=True, help="Run what the store in --out holds already, too.")
@click.option("--retry-failed", is_flag=True, help="Run crashes and timeouts of the store again.")
@click.option("--jobs", type=WholeFrom(1), help="Cells side by side (their search times mean nothing).")
@click.option("--no-wait", is_flag=True, help=NO_WAIT)
@click.option("--html", type=click.Path(path_type=Path), help="One page of all claims.")
@click.option("--markdown", type=click.Path(path_type=Path), help="The same page as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Findings, series and rows as JSON on stdout.")
def command(
    artefact: str | None,
    every: bool,
    full: bool,
    full_within: str | None,
    profiles: tuple[str, ...],
    framework: str | None,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    jobs: int | None,
    no_wait: bool,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> int:
    """Run ARTEFACT (one of `pipebench list artefacts`) and put its results beside each of the paper's claims.

    With --out every finished cell is kept at once: the same command again goes on where it was stopped. A cell
    that fails as a claim says it does is a result, not a failure.
    """
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.cli.commands.planning.compare import checked_page_path
    from pipebench.formats.quantities import parse_seconds

    if (fresh or retry_failed) and out is None:
        option = "--fresh" if fresh else "--retry-failed"
        raise PipebenchError(f"{option} is about a store", "name its folder with --out")
    if every == (artefact is not None):
        raise click.UsageError("name one artefact, or say --all (pipebench list artefacts)")
    if full and full_within is not None:
        raise click.UsageError("--full runs all cells of all artefacts: leave --full-within out")
    within_s = parse_seconds(full_within) if full_within else None
    options = ReproduceOptions(full, within_s, profiles, out, fresh, retry_failed, framework)
    page, table = checked_page_path(html), checked_markdown_path(markdown)
    host = open_host()
    where = Where(jobs=jobs or 1, patience_s=patience_s(no_wait))
    if not where.parallel:
        isolation().warm_up()
    store = Store.open(out / "store") if out is not None else None
    runs = ArtefactRuns(host, options, store, where, several=every)
    chosen = runs.choose(list(host.slot("artefacts")) if every else [artefact or ""])
    done, interrupted = runs.run(chosen, (lambda _: None) if as_json else print_artefact)
    if as_json:
        plain = [each.plain for each in done]
        print_json(plain if every else plain[0])
    extent = ["--full"] if full else ["--full-within", full_within] if full_within else []
    words = ["--all" if every else artefact or "", *extent, *options.words]
    again = shlex.join(["pipebench", "reproduce", *words, "--out", "FOLDER", "--markdown", "FILE"])
    write_pages(page, table, done, runs.not_run, again, store)
    if interrupted is not None:
        raise interrupted
    codes = [ExitCode.SOME_FAILED] * bool(runs.not_run) + [_exit_code(each.results) for each in done]
    return max(codes, default=ExitCode.NOTHING_RAN)


def checked_markdown_path(path: Path | None) -> Path | None:
    """The path, before anything runs. Raises PipebenchError as `checked_page_path`."""
    from pipebench.formats.files import prepare_file

    if path is not None:
        if path.suffix != ".md":
            raise PipebenchError(f"--markdown writes a page, not {str(path)!r}", "end it in .md")
        if not os.path.isdir(path.absolute().parent):
            raise PipebenchError(f"there is no folder {str(path.parent)!r} for {path.name!r}", "make it first")
        prepare_file(path)
    return path


def _exit_code(results: "list[Result]") -> int:
    """What a run that ended so tells its caller: failures that a claim is about are results."""
    if not any(result.is_expected or result.row.status in ("ok", "infeasible") for result in results):
        return ExitCode.NOTHING_RAN
    return ExitCode.SOME_FAILED if any(result.failed for result in results) else ExitCode.OK
