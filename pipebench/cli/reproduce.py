"""pipebench reproduce: a paper's figure or table again, its claims judged."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import console, open_host, print_json, show_new_warnings
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.reproduce import Work
    from pipebench.bench.sweeps.agenda import Finished
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.bench.timelines import Timeline
    from pipebench.domain.artefact import Figure, Finding, Result
    from pipebench.hooks.descriptors import Artefact
    from pipebench.hooks.manager import Host


@click.command()
@click.argument("artefact")
@click.option("--full", is_flag=True, help="All cells of the paper, not a subset of a few minutes.")
@click.option("--profile", "-p", "profiles", multiple=True, help="Profile files to run beside what ships.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for chart, table, series and a store.")
@click.option("--fresh", is_flag=True, help="Run what the store in --out holds already, too.")
@click.option("--jobs", type=click.IntRange(1), help="Cells side by side (their search times mean nothing).")
@click.option("--json", "as_json", is_flag=True, help="Findings, series and rows as JSON on stdout.")
def command(
    artefact: str,
    full: bool,
    profiles: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Run ARTEFACT (such as madpipe/fig6) and put what was measured beside each of the paper's claims.

    With --out every finished cell is kept at once: the same command again goes on where it was stopped.
    """
    from pipebench.bench.reproduce import work_of
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.bench.timelines import timelines
    from pipebench.report.findings_text import print_findings, print_tables

    if fresh and out is None:
        raise PipebenchError("--fresh is about a store", "name its folder with --out")
    host = open_host()
    described: Any = host.find("artefacts", artefact).component
    reproduction = host.load(described)()
    where = Where(jobs=jobs or 1)
    if not where.parallel:
        isolation()
    store = Store.open(out / "store") if out is not None else None
    work = work_of(host, reproduction.suite(full, profiles), store, fresh, where.parallel)
    show_new_warnings(host)
    click.echo(about(work, where.jobs) + ("" if out else " (nothing is kept without --out)"), err=True)
    finished, interrupted = _run(host, work, where)
    results = work.results(finished)
    found, figure = reproduction.judge(results), reproduction.series(results)
    drawn = list(timelines(host, work, finished, store))
    if out is not None:
        _write(out, described, results, found, figure, drawn)
    if as_json:
        print_json({"artefact": artefact, "findings": found, "figure": figure, "results": results})
    else:
        print_findings(console(), described, results, found)
        print_tables(console(), figure)
        _show(drawn)
        for note in figure.notes:
            click.echo(f"  {note}")
    if interrupted:
        raise PipebenchError(f"interrupted after {len(results)} cells", exit_code=ExitCode.INTERRUPTED)
    return _exit_code(results)


def about(work: "Work", jobs: int) -> str:
    """How many cells there are, how many are left, about how long they take."""
    left = len(work.agenda.to_run)
    known = f", {len(work.agenda.cached)} in the store" if work.agenda.cached else ""
    refused = f", {len(work.refused)} cannot be run" if work.refused else ""
    return f"{len(work.cells)} cells{known}{refused}, {left} to run: about {duration(work.expected_s / jobs)}"


def duration(expected_s: float) -> str:
    """Seconds, minutes or hours, roughly."""
    if expected_s < 90:
        return f"{expected_s:.0f} s"
    return f"{expected_s / 60:.0f} min" if expected_s < 5400 else f"{expected_s / 3600:.1f} h"


def _run(host: "Host", work: "Work", where: "Where") -> "tuple[list[Finished], bool]":
    from pipebench.bench.reproduce import run_cells
    from pipebench.cli.progress import Progress

    finished = []
    interrupted = False
    with Progress(work.agenda) as progress:
        try:
            for each in run_cells(host, work, where, progress):
                finished.append(each)
                if not each.cached:
                    progress.finished(each.outcome)
        except KeyboardInterrupt:
            interrupted = True
    return finished, interrupted


def _show(drawn: "list[Timeline]") -> None:
    """Timelines as text, each as wide as it goes."""
    from pipebench.report.timeline import legend, timeline

    longest = max((each.trace.total_ns for each in drawn), default=0)
    for each in drawn:
        click.echo(f"\n{each.title}")
        for row in timeline(each.trace, console().width, longest):
            click.echo(row)
    for row in dict.fromkeys(legend(each.trace) for each in drawn):
        click.echo(row)


def _write(
    out: Path,
    artefact: "Artefact",
    results: "list[Result]",
    found: "list[Finding]",
    figure: "Figure",
    drawn: "list[Timeline]",
) -> None:
    from pipebench.formats.files import write_file
    from pipebench.report.chart import svg
    from pipebench.report.findings_text import markdown, series_csv
    from pipebench.report.timelines_svg import timelines_svg

    name = artefact.name.replace("/", "-")
    write_file(out / f"{name}.svg", svg(figure).encode())
    write_file(out / f"{name}.csv", series_csv(figure).encode())
    others = []
    if drawn:
        title, file = f"{artefact.name}: timelines", f"{name}-timelines.svg"
        traces = [(each.title, each.trace) for each in drawn]
        write_file(out / file, timelines_svg(traces, title).encode())
        others.append((title, file))
    page = markdown(artefact, results, found, figure, f"{name}.svg", others)
    write_file(out / f"{name}.md", page.encode())
    more = "".join(f", {file}" for _, file in others)
    click.echo(f"{out / name}.svg, .md and .csv{more} written", err=True)


def _exit_code(results: "list[Result]") -> int:
    statuses = {result.row.status for result in results}
    if not statuses & {"ok", "infeasible"}:
        return ExitCode.NOTHING_RAN
    return ExitCode.SOME_FAILED if statuses & {"crashed", "timeout", "memory"} else ExitCode.OK
