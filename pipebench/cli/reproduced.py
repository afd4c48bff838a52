"""One artefact run, shown and written: what `pipebench reproduce` does for each that was named."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import console, show_new_warnings

if TYPE_CHECKING:
    from pipebench.bench.reproduce import Work
    from pipebench.bench.store import Store
    from pipebench.bench.sweeps.agenda import Finished
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.domain.artefact import Figure, Finding, Result
    from pipebench.hooks.descriptors import Artefact
    from pipebench.hooks.manager import Host
    from pipebench.report.gantt.gantt import Gantt


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of the run."""

    full: bool
    profiles: tuple[str, ...]
    out: Path | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class Reproduced:
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


def reproduced(host: "Host", name: str, asked: Asked, store: "Store | None", where: "Where") -> Reproduced:
    """Run what is left of an artefact and judge it. Raises PipebenchError for a name that is not there."""
    from pipebench.bench.reproduce import work_of
    from pipebench.bench.timelines import timelines

    described: Any = host.find("artefacts", name).component
    reproduction = host.load(described)()
    work = work_of(host, reproduction.suite(asked.full, asked.profiles), store, asked.fresh)
    show_new_warnings(host)
    kept = "" if asked.out else " (nothing is kept without --out)"
    click.echo(f"{name}: {about(work, where.jobs)}{kept}", err=True)
    finished, interrupted = _run(host, work, where)
    results = work.results(finished)
    found, figure = reproduction.judge(results), reproduction.series(results)
    drawn = _gantts(list(timelines(host, work, finished, store)))
    done = Reproduced(described, results, found, figure, drawn, asked.full, interrupted)
    if asked.out is not None:
        _write(asked.out, done)
    return done


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


def shown(done: Reproduced) -> None:
    """Claims, tables and timelines in the terminal."""
    from pipebench.report.findings_text import print_findings, print_tables
    from pipebench.report.gantt.text import legend, timeline

    out = console()
    print_findings(out, done.artefact, done.results, done.found)
    print_tables(out, done.figure)
    for each in done.drawn:
        for line in ("", each.title, *timeline(each, out.width)):
            click.echo(line)
    for line in dict.fromkeys(map(legend, done.drawn)):
        click.echo(line)
    for note in done.figure.notes:
        click.echo(f"  {note}")


def write_page(path: Path, done: list[Reproduced]) -> None:
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
    click.echo(f"{path} written", err=True)


def _gantts(drawn: "list[Any]") -> "list[Gantt]":
    """Lanes alone, all as long as the longest."""
    from dataclasses import replace

    from pipebench.report.gantt.gantt import gantt

    longest = max((each.trace.total_ns for each in drawn), default=0)
    return [replace(gantt(each.trace, each.title, longest, links=False), memory=()) for each in drawn]


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


def _write(out: Path, done: Reproduced) -> None:
    from pipebench.formats.files import write_file
    from pipebench.report.chart import svg
    from pipebench.report.findings_text import markdown, series_csv
    from pipebench.report.gantt.svg import gantt_svg

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
    click.echo(f"{out / name}.svg, .md and .csv{more} written", err=True)
