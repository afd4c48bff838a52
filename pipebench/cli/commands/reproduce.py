"""pipebench reproduce: a paper's figure or table again, its claims judged, shown and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import of_slot, one_of
from pipebench.cli.parameters import WholeFrom
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.reproduce import ReproductionPlan
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.run_plan import FinishedTrial
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.domain.artefact import Figure, Finding, Result
    from pipebench.hooks.descriptors import Artefact
    from pipebench.hooks.manager import Host
    from pipebench.report.gantt.gantt import Gantt


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """What the command line says of the run."""

    full: bool
    profiles: tuple[str, ...]
    out: Path | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class ArtefactRun:
    """An artefact that was run, to its end or not. drawn: its timelines on one scale of time."""

    artefact: "Artefact"
    results: "list[Result]"
    found: "list[Finding]"
    figure: "Figure"
    drawn: "list[Gantt]"
    full: bool
    interrupted: bool

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "artefact": self.artefact.name,
            "findings": self.found,
            "figure": self.figure,
            "results": self.results,
        }


def run_artefact(
    host: "Host", name: str, asked: ReproduceOptions, store: "Store | None", where: "Where"
) -> ArtefactRun:
    """Run what is left of an artefact and judge it. Raises PipebenchError for a name that is not there."""
    from pipebench.bench.reproduce import work_of
    from pipebench.bench.timelines import timelines

    described: Any = host.find("artefacts", name).component
    reproduction = host.load(described)()
    work = work_of(host, reproduction.suite(asked.full, asked.profiles), store, asked.fresh)
    show_new_warnings(host)
    kept = "" if asked.out else " (nothing is kept without --out)"
    say(f"{name}: {about(work, where.jobs)}{kept}", err=True)
    finished, interrupted = _run(host, work, where)
    results = work.results(finished)
    found, figure = reproduction.judge(results), reproduction.series(results)
    drawn = _gantts(list(timelines(host, work, finished, store)))
    done = ArtefactRun(described, results, found, figure, drawn, asked.full, interrupted)
    if asked.out is not None:
        _write(asked.out, done)
    return done


def about(work: "ReproductionPlan", jobs: int) -> str:
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


def write_page(path: Path, done: list[ArtefactRun]) -> None:
    """One page of all claims."""
    from pipebench.formats.files import write_file
    from pipebench.report.html.claims_page import Claims, claims_page

    claims = [
        Claims(
            each.artefact,
            each.results,
            each.found,
            each.figure,
            each.drawn,
            f"pipebench reproduce {each.artefact.name}{' --full' if each.full else ''}",
        )
        for each in done
    ]
    write_file(path, claims_page(claims, "Claims of the papers, measured").encode())
    say(f"{path} written", err=True)


def _gantts(drawn: "list[Any]") -> "list[Gantt]":
    """Lanes alone, all as long as the longest."""
    from dataclasses import replace

    from pipebench.report.gantt.gantt import gantt

    longest = max((each.trace.total_ns for each in drawn), default=0)
    return [replace(gantt(each.trace, each.title, longest, links=False), memory=()) for each in drawn]


def _run(host: "Host", work: "ReproductionPlan", where: "Where") -> "tuple[list[FinishedTrial], bool]":
    from pipebench.bench.reproduce import run_cells
    from pipebench.cli.progress import Progress

    finished = []
    interrupted = False
    with Progress(work.agenda) as progress:
        try:
            for each in run_cells(host, work, where, progress):
                finished.append(each)
                if not each.cached:
                    progress.advance(each.outcome)
        except KeyboardInterrupt:
            interrupted = True
    return finished, interrupted


def _write(out: Path, done: ArtefactRun) -> None:
    from pipebench.formats.files import write_file
    from pipebench.report.chart import svg
    from pipebench.report.gantt.svg import gantt_svg
    from pipebench.report.text.findings import markdown, series_csv

    name = done.artefact.name.replace("/", "-")
    write_file(out / f"{name}.svg", svg(done.figure).encode())
    write_file(out / f"{name}.csv", series_csv(done.figure).encode())
    others = []
    if done.drawn:
        title, file = f"{done.artefact.name}: timelines", f"{name}-timelines.svg"
        write_file(out / file, gantt_svg(done.drawn, title).encode())
        others.append((title, file))
    page = markdown(done.artefact, done.results, done.found, done.figure, f"{name}.svg", others)
    write_file(out / f"{name}.md", page.encode())
    more = "".join(f", {file}" for _, file in others)
    say(f"{out / name}.svg, .md and .csv{more} written", err=True)


@click.command()
@click.argument("artefact", required=False, shell_complete=one_of(of_slot("artefacts")))
@click.option("--all", "every", is_flag=True, help="All artefacts of all papers.")
@click.option("--full", is_flag=True, help="All cells of the paper, not a subset of a few minutes.")
@click.option("--profile", "-p", "profiles", multiple=True, help="Profile files to run beside what ships.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for chart, table, series and a store.")
@click.option("--fresh", is_flag=True, help="Run what the store in --out holds already, too.")
@click.option("--jobs", type=WholeFrom(1), help="Cells side by side (their search times mean nothing).")
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
    from pipebench.cli.commands.compare import checked_page_path

    if fresh and out is None:
        raise PipebenchError("--fresh is about a store", "name its folder with --out")
    if every == (artefact is not None):
        raise click.UsageError("name one artefact, or say --all (pipebench list artefacts)")
    page = checked_page_path(html)
    host = open_host()
    names = list(host.slot("artefacts")) if every else [artefact or ""]
    where = Where(jobs=jobs or 1)
    if not where.parallel:
        isolation().warm_up()
    store = Store.open(out / "store") if out is not None else None
    done: list[ArtefactRun] = []
    codes: list[int] = []
    interrupted: PipebenchError | None = None
    for name in names:
        try:
            done.append(run_artefact(host, name, ReproduceOptions(full, profiles, out, fresh), store, where))
        except PipebenchError as error:
            if not every or error.exit_code == ExitCode.INTERRUPTED:
                raise
            say(f"warning: {name}: {error}", err=True)
            codes.append(ExitCode.SOME_FAILED)
            continue
        codes.append(_exit_code(done[-1].results))
        if not as_json:
            print_artefact(done[-1])
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
